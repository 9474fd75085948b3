// The table of root causes as an array.
#include "host/finding/tables.h"

namespace numsan {
namespace {

constexpr Category kCategories[] = {
#define NUMSAN_CATEGORY(id, slug, name, definition, taxonomy) {id, slug, name, definition, taxonomy},
#include "host/finding/categories.def"
#undef NUMSAN_CATEGORY
};

}  // namespace

std::span<const Category> categories() { return kCategories; }

const Category* find_category(std::string_view id) {
    for (const Category& row : kCategories) {
        if (id == row.id) return &row;
    }
    return nullptr;
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
