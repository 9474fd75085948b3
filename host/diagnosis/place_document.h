// Places and whole numbers as the report's section `diagnosis` has them, read back. Within host/diagnosis only.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "host/finding/place.h"
#include "host/report/json_fields.h"

namespace numsan {

inline constexpr int64_t kMostWhole = int64_t(1) << 62;  ///< whole numbers beyond it are none of ours

inline int64_t whole_number(const fields::Json& object, const char* key, int64_t otherwise = 0) {
    const auto value = fields::integer(fields::at(object, key));
    return value && *value >= -1 && *value <= kMostWhole ? static_cast<int64_t>(*value) : otherwise;
}

inline std::optional<Place> read_place(const fields::Json& object, const char* key) {
    const fields::Json& place = fields::at(object, key);
    const int64_t line = whole_number(place, "line");
    if (!place.is_object() || line > INT32_MAX) return {};
    Place made{fields::text(place, "file"), static_cast<int>(line), fields::text(place, "function"), {}, {}};
    if (fields::at(place, "code").is_string()) made.code = fields::text(place, "code");
    if (const int64_t cell = whole_number(place, "cell"); cell > 0 && cell <= INT32_MAX)
        made.cell = static_cast<int>(cell);
    return made;
}

}  // namespace numsan
