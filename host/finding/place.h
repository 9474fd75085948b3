// A line of source code.
#pragma once

#include <optional>
#include <string>

namespace numsan {

/// `code` is the text of the line, stripped, when the file could be read or Python keeps it.
struct Place {
    std::string file;
    int line = 0;
    std::string function;
    std::optional<std::string> code;
    std::optional<int> cell = {};  ///< of a notebook, whose `file` is none: the number that is shown beside it
};

}  // namespace numsan
