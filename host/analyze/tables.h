// Lookups in the tables of root causes and mechanisms.
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

/// A row of mechanisms.def. Literals: valid for ever.
struct Mechanism {
    const char* code;  ///< NS101
    const char* id;    ///< DOM
    const char* name;
    const char* meaning;
};

std::span<const Category> categories();
std::span<const Mechanism> mechanisms();

/// By id ("N3", "U"); null when there is none. [MT]
const Category* find_category(std::string_view id);

/// By id ("SING") or code ("NS102"); null when there is none. [MT]
const Mechanism* find_mechanism(std::string_view id_or_code);

/// Codes of the taxonomy ("4.2", "5.4"), empty where the category has none. [MT]
std::vector<std::string> taxonomy_codes(const Category& category);

}  // namespace numsan
