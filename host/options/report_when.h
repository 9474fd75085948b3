// What report_when=auto means.
#pragma once

#include <cstdint>

namespace numsan {

/// Of a job of more ranks than this, those that found nothing write no report.
inline constexpr int64_t kFewRanks = 8;

}  // namespace numsan
