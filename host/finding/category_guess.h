// A root cause, and how sure the ranking is of it.
#pragma once

#include <string>

namespace numsan {

struct CategoryGuess {
    std::string id;  ///< N1..N9 or U, a row of categories.def
    double confidence = 0;
};

}  // namespace numsan
