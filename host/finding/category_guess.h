// A root cause, and how sure the ranking is of it.
#pragma once

#include "host/finding/categories.h"

namespace numsan {

struct CategoryGuess {
    CategoryId id = "U";
    double confidence = 0;
};

}  // namespace numsan
