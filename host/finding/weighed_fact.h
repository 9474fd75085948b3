// A piece of evidence that was weighed for or against a root cause.
#pragma once

#include "host/finding/categories.h"

namespace numsan {

struct WeighedFact {
    const char* name;  ///< "InLoss", as in docs/root-causes.md; literal
    CategoryId category;
    double weight;  ///< difference of log-odds before kConfidenceScale; negative: speaks against the category
};

}  // namespace numsan
