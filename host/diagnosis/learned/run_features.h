// A training as one row of numbers, which the learned model reads.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

#include "host/diagnosis/signals.h"

namespace numsan {

/// The members are the rows of run_features.def.
struct RunFeatures {
#define NUMSAN_RUN_FEATURE(key, signal, words) double key = NAN;
#include "host/diagnosis/learned/run_features.def"
#undef NUMSAN_RUN_FEATURE
};

/// A row of run_features.def, in its order. Literals: valid for ever.
struct RunFeature {
    const char* key;
    const char* signal;  ///< that it is computed from, "": of none of signals.def
    const char* words;
    double RunFeatures::*value;
};

inline constexpr RunFeature kRunFeatures[] = {
#define NUMSAN_RUN_FEATURE(key, signal, words) {#key, signal, words, &RunFeatures::key},
#include "host/diagnosis/learned/run_features.def"
#undef NUMSAN_RUN_FEATURE
};

inline constexpr size_t kRunFeatureCount = std::size(kRunFeatures);

/// So that each is a float, as the model reads it; one that is not finite is NaN.
inline constexpr double kLargestFeature = 1e30;

/// Of a run, as its report has it. [MT]
RunFeatures features_of(const Signals& signals);

}  // namespace numsan
