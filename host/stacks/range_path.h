// Ranges of the program that an event happened inside of, by number.
#pragma once

#include <cstdint>
#include <vector>

namespace numsan {

/// Names of ranges inside each other, interned; 0: none. What interns them may forget an id: then it names none.
using RangeId = uint32_t;

struct RangePath {
    RangeId pushed = 0;   ///< of the thread
    RangeId started = 0;  ///< of the process
};

struct OpenRange;

/// What a thread has pushed and not popped; see OpenRanges. Trivially destructible: nothing of numsan's runs at thread
/// exit.
struct ThreadRanges {
    RangeId path = 0;
    int ignored = 0;                           ///< how many of `pushed` are the program's own business
    std::vector<OpenRange>* pushed = nullptr;  ///< owned; null where none is open
    int64_t deeper = 0;                        ///< further ones
};

}  // namespace numsan
