// The thresholds of thresholds.def, by name.
#pragma once

#include <cstdint>

namespace numsan {

#define NUMSAN_THRESHOLD(name, type, value, meaning, reason) inline constexpr type name = value;  // meaning
#include "host/base/thresholds.def"
#undef NUMSAN_THRESHOLD

}  // namespace numsan
