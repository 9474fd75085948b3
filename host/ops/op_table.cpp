#include "host/ops/op_table.h"

#include <cctype>
#include <string>

namespace numsan {

const OpTraits& traits_of(std::string_view op) noexcept {
    return is_of_torch(op) ? op_table::row_of(plain_op_name(op)) : op_table::kEmptyRow;
}

bool node_is_made_by(std::string_view node, std::string_view op) {
    const auto letters = [](std::string_view text) {
        std::string kept;
        for (const char c : text) {
            if (c != '_') kept += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        }
        return kept;
    };
    const std::string made = letters(node.substr(0, node.rfind("Backward")));
    return !made.empty() && letters(plain_op_name(op)).find(made) != std::string::npos;
}

}  // namespace numsan
