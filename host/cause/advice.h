// What to change at the line of a finding: the rows of advice.def that fit what was measured there.
#pragma once

#include <cstddef>
#include <vector>

#include "host/cause/features.h"
#include "host/finding/categories.h"
#include "host/finding/help_line.h"
#include "host/finding/mechanisms.h"

namespace numsan {

inline constexpr size_t kMaxAdvice = 3;

/// At most kMaxAdvice sentences, the likeliest first; one change each, at most in two ways. Pure.
std::vector<HelpLine> advice(const Features& features, CategoryId category, Mechanism mechanism);

/// The same as numbers of rows, counted from 0; what tests need to see that no row is out of reach.
std::vector<size_t> advice_rows(const Features& features, CategoryId category, Mechanism mechanism);
size_t advice_row_count();

}  // namespace numsan
