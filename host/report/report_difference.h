// Whether two reports say the same.
#pragma once

#include <string>
#include <vector>

namespace numsan {

/// What differs, a line each: "findings/0/step: 3, now 4"; empty when nothing does. Times, and the version that wrote
/// the report, are not compared. Never throws for any text. [MT]
std::vector<std::string> report_differences(const std::string& before, const std::string& now);

}  // namespace numsan
