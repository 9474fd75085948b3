// Ranks the root causes of a finding from what was measured, with calibrated confidence.
#pragma once

#include <string>
#include <vector>

#include "host/cause/features.h"
#include "host/finding/category_guess.h"

namespace numsan {

struct Ranking {
    std::vector<CategoryGuess> guesses;  ///< most likely first, U among them; confidences add up to at most 1
    std::vector<std::string> facts;      ///< what speaks for the first, strongest first
    std::vector<WeighedFact> weighed;    ///< of all causes, in the order of their ids
};

/// Pure. U is ranked first when nothing separates the causes.
Ranking rank_causes(const Features& features);

}  // namespace numsan
