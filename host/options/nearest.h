// The known word closest to a misspelt one, for "did you mean".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace numsan {

/// Letters to insert, delete, replace or swap to turn one word into the other; case does not count. [MT]
size_t edit_distance(std::string_view a, std::string_view b);

/// The nearest of `known`, the earliest of equals; empty when `known` is. [MT]
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace numsan
