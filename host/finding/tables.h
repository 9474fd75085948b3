// Lookups in the table of root causes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace numsan {

/// A row of categories.def. Literals: valid for ever.
struct Category {
    const char* id;
    const char* slug;
    const char* name;
    const char* definition;
    const char* taxonomy;
};

std::span<const Category> categories();

/// By id ("N3", "U"); null when there is none. [MT]
const Category* find_category(std::string_view id);

/// Codes of the taxonomy ("4.2", "5.4"), empty where the category has none. [MT]
std::vector<std::string> taxonomy_codes(const Category& category);

}  // namespace numsan
