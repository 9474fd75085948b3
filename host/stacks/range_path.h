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
    RangeId path = 0;                          ///< of `pushed`
    int64_t depth = 0;                         ///< how many ranges are open
    int64_t ignored_from = -1;                 ///< depth of the outermost that is the program's own business; -1: none
    std::vector<OpenRange>* pushed = nullptr;  ///< owned: the outermost ones; null where none is known
    bool nameless = false;                     ///< no name is known until the outermost range ends
};

}  // namespace numsan
