// The pages of `numsan explain`.
#pragma once

#include <string>

namespace numsan {

/// A page, or the nearest word that has one.
struct Explanation {
    std::string text;     ///< empty when the word is unknown
    std::string nearest;  ///< set when the word is unknown
};

/// `word`: a code (NS102, NP105, ND101), a mechanism (SING), a category (N3), or the slug of a category, a cause of
/// slowness or a training fault (unsafe-gradient, float64, missing-zero-grad); case does not count. [MT]
Explanation explain_word(const std::string& word);

}  // namespace numsan
