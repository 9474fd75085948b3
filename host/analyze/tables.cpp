// The tables of root causes and mechanisms as arrays.
#include "host/analyze/tables.h"

namespace numsan {
namespace {

constexpr Category kCategories[] = {
#define NUMSAN_CATEGORY(id, slug, name, definition, taxonomy) {id, slug, name, definition, taxonomy},
#include "host/analyze/categories.def"
#undef NUMSAN_CATEGORY
};

constexpr Mechanism kMechanisms[] = {
#define NUMSAN_MECHANISM(code, id, name, meaning) {code, id, name, meaning},
#include "host/analyze/mechanisms.def"
#undef NUMSAN_MECHANISM
};

}  // namespace

std::span<const Category> categories() { return kCategories; }

std::span<const Mechanism> mechanisms() { return kMechanisms; }

const Category* find_category(std::string_view id) {
    for (const Category& row : kCategories) {
        if (id == row.id) return &row;
    }
    return nullptr;
}

const Mechanism* find_mechanism(std::string_view id_or_code) {
    for (const Mechanism& row : kMechanisms) {
        if (id_or_code == row.id || id_or_code == row.code) return &row;
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
