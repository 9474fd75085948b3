// How many values of a tensor lie between one power of two and the next.
#pragma once

#include <cstdint>
#include <vector>

namespace numsan {

/// Of finite values that are not zero: counts[i] have a magnitude from 2^(first + i) up to twice that. Complex elements
/// count as two. Empty: not counted.
struct ExponentCounts {
    int first = 0;
    std::vector<int64_t> counts;
};

}  // namespace numsan
