// Look-ups in the table of root causes.
#include "host/finding/tables.h"

namespace numsan {

std::span<const Category> categories() { return kCategories; }

std::optional<CategoryId> find_category(std::string_view id) {
    for (size_t row = 0; row < std::size(kCategories); ++row) {
        if (id == kCategories[row].id) return CategoryId(row);
    }
    return std::nullopt;
}

std::vector<std::string> taxonomy_codes(const Category& category) {
    std::vector<std::string> out;
    std::string_view rest = category.taxonomy;
    if (rest == "none") return out;
    while (!rest.empty()) {
        const size_t end = rest.find("; ");
        const std::string_view entry = rest.substr(0, end);
        out.emplace_back(entry.substr(0, entry.find(' ')));
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 2);
    }
    return out;
}

}  // namespace numsan
