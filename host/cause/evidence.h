// Pieces of evidence for and against root causes, with their weights: evidence.def is the table.
#pragma once

#include <cstdint>

#include "host/finding/category_guess.h"

namespace numsan {

enum class Evidence : uint8_t {
#define NUMSAN_EVIDENCE(id, category, weight, meaning) id,
#include "host/cause/evidence.def"
#undef NUMSAN_EVIDENCE
};

inline constexpr WeighedFact kEvidence[] = {
#define NUMSAN_EVIDENCE(id, category, weight, meaning) {#id, category, weight},
#include "host/cause/evidence.def"
#undef NUMSAN_EVIDENCE
};

constexpr const WeighedFact& info(Evidence evidence) { return kEvidence[static_cast<uint8_t>(evidence)]; }

}  // namespace numsan
