// numsan explain: the page of a mechanism or a category.
#include <cstdio>

#include "host/cli/commands.h"
#include "host/explain/explain.h"

namespace numsan::cli {

int explain(const std::string& word) {
    const Explanation found = explain_word(word);
    if (found.text.empty()) {
        complain("'" + word + "' is no code or category; the nearest is '" + found.nearest + "'");
        return kUsage;
    }
    std::fputs(found.text.c_str(), stdout);
    return std::fflush(stdout) == 0 ? kOk : kUsage;
}

}  // namespace numsan::cli
