// A root cause, how sure the ranking is of it, and what was weighed for and against it.
#pragma once

#include "host/finding/categories.h"

namespace numsan {

struct CategoryGuess {
    CategoryId id = "U";
    double confidence = 0;
};

/// A piece of evidence.
struct WeighedFact {
    const char* name;  ///< "InLoss", as in docs/root-causes.md; literal
    CategoryId category;
    double weight;  ///< difference of log-odds before kConfidenceScale; negative: speaks against the category
};

}  // namespace numsan
