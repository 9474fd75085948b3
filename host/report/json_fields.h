// Reading documents that may be damaged: every getter has a value for "not there" or "of another type"; and values that
// may not be there, written.
#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "host/options/one_line.h"

namespace numsan::fields {

using Json = nlohmann::ordered_json;

inline Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
inline Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

/// The member, or a null document.
inline const Json& at(const Json& object, const char* key) {
    static const Json& null = *new Json(nullptr);
    if (!object.is_object()) return null;
    const auto found = object.find(key);
    return found == object.end() ? null : *found;
}

/// A string on one line: control characters become '?', tabs blanks.
inline std::string clean(const std::string& text) {
    std::string out = text;
    std::replace(out.begin(), out.end(), '\t', ' ');
    return one_line(out, out.size());
}

inline std::string text(const Json& object, const char* key) {
    const Json& value = at(object, key);
    return value.is_string() ? clean(value.get_ref<const std::string&>()) : std::string();
}

/// Holds every integer that the parser keeps exact: from INT64_MIN to UINT64_MAX.
using JsonInteger = __int128;

inline std::optional<JsonInteger> integer(const Json& value) {
    if (value.is_number_unsigned()) return value.get<uint64_t>();
    return value.is_number_integer() ? std::optional<JsonInteger>(value.get<int64_t>()) : std::nullopt;
}

inline JsonInteger number(const Json& object, const char* key, JsonInteger otherwise = 0) {
    return integer(at(object, key)).value_or(otherwise);
}

inline std::optional<double> real(const Json& object, const char* key) {
    const Json& value = at(object, key);
    return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

/// Members of an array; an empty array for anything else.
inline const Json& list(const Json& object, const char* key) {
    static const Json& empty = *new Json(Json::array());
    const Json& value = at(object, key);
    return value.is_array() ? value : empty;
}

}  // namespace numsan::fields
