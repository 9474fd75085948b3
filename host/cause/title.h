// The title of a finding: "first NaN of this run: `aten::log` left its domain in 2 of 3 values".
#pragma once

#include <string>

namespace numsan {

struct Birth;
struct Finding;

/// Finding::happened.
std::string happened(const Birth& birth);

std::string title_of(const Finding& finding);

}  // namespace numsan
