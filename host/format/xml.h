// Text inside XML 1.0.
#pragma once

#include <string>
#include <string_view>

namespace numsan {

/// `text`, which is UTF-8, for an element or an attribute in double quotes. Lines are kept; characters that XML 1.0
/// cannot hold become U+FFFD. [MT]
std::string xml_text(std::string_view text);

}  // namespace numsan
