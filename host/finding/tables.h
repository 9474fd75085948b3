// Lookups in the table of root causes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/finding/categories.h"

namespace numsan {

std::span<const Category> categories();

/// By id ("N3", "U"). [MT]
std::optional<CategoryId> find_category(std::string_view id);

/// Codes of the taxonomy ("4.2", "5.4"), empty where the category has none. [MT]
std::vector<std::string> taxonomy_codes(const Category& category);

}  // namespace numsan
