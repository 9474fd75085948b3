// The number of a birth. Depends on nothing.
#pragma once

#include <cstdint>

namespace numsan {

using BirthId = uint64_t;  ///< 1, 2, ... in the order births were seen; 0 is "none"

}  // namespace numsan
