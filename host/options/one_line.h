// Text from outside, made safe for one line of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace numsan {

/// At most `longest` bytes of `text`, "..." after them when there are more; UTF-8 is not cut inside a character.
/// Control characters (C0, DEL, and C1 as UTF-8; ECMA-48) become '?'. [MT]
std::string one_line(std::string_view text, size_t longest);

/// The first 80 bytes of it so, between quotation marks. [MT]
inline std::string quoted(std::string_view text) { return "'" + one_line(text, 80) + "'"; }

}  // namespace numsan
