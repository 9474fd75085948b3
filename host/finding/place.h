// A line of source code.
#pragma once

#include <optional>
#include <string>

namespace numsan {

/// `code` is the text of the line, stripped, when the file could be read.
struct Place {
    std::string file;
    int line = 0;
    std::string function;
    std::optional<std::string> code;
};

}  // namespace numsan
