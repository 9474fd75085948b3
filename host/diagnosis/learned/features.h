// A training as one row of numbers, which the learned model reads.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

#include "host/diagnosis/signals.h"

namespace numsan {

/// The members are the rows of features.def.
struct Features {
#define NUMSAN_FEATURE(key, signal, words) double key = NAN;
#include "host/diagnosis/learned/features.def"
#undef NUMSAN_FEATURE
};

/// A row of features.def, in its order. Literals: valid for ever.
struct FeatureInfo {
    const char* key;
    const char* signal;  ///< that it is computed from, "": of none of signals.def
    const char* words;
    double Features::*value;
};

inline constexpr FeatureInfo kFeatures[] = {
#define NUMSAN_FEATURE(key, signal, words) {#key, signal, words, &Features::key},
#include "host/diagnosis/learned/features.def"
#undef NUMSAN_FEATURE
};

inline constexpr size_t kFeatureCount = std::size(kFeatures);

/// Of a run, as its report has it. [MT]
Features features_of(const Signals& signals);

}  // namespace numsan
