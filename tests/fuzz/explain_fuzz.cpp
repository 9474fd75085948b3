// The word after `numsan explain`: a page whatever the case, or a neighbour that has a page.
#include <cctype>

#include "host/explain/explain.h"
#include "tests/fuzz/targets.h"

namespace numsan::fuzz {

void fuzz_explain(std::string_view text) {
    const std::string word(text);
    const Explanation found = explain_word(word);
    require(found.text.empty() != found.nearest.empty(), "a page or a neighbour", word);
    if (found.text.empty())
        require(!explain_word(found.nearest).text.empty(), "the neighbour has a page", found.nearest);
    std::string upper = word;
    for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    require(explain_word(upper).text == found.text, "case does not count", word);
}

}  // namespace numsan::fuzz
