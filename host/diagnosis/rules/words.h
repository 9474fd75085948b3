// Words that training faults and early warnings share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/finding/place.h"
#include "host/report/text_layout.h"

namespace numsan {

/// "`model.head.weight`", or what is known of a parameter without a name: "a parameter of 4 x 4".
std::string parameter_words(const std::string& name, const std::vector<int64_t>& shape);

/// "  --> file:line in f" and, where the line of code is known, that; empty without a place. Lines end with a newline.
std::string place_lines(const std::optional<Place>& place, const TextStyle& style);

}  // namespace numsan
