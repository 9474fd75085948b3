// Integer element types and their ranges, generated from integer_type.def. Depends on nothing.
#pragma once

#include <cstdint>
#include <limits>

namespace numsan {

enum class IntegerType : uint8_t {
    None,  ///< not an integer
#define NUMSAN_INTEGER_TYPE(id, name, type) id,
#include "host/base/integer_type.def"
#undef NUMSAN_INTEGER_TYPE
};

/// Numbers are exact as long doubles, which have the digits of every 64-bit integer.
struct IntegerTypeInfo {
    const char* name;
    uint8_t bytes;
    long double least;
    long double most;
};

inline constexpr IntegerTypeInfo kIntegerTypes[] = {
    {"", 0, 0, 0},
#define NUMSAN_INTEGER_TYPE(id, name, type) \
    {name, sizeof(type), std::numeric_limits<type>::min(), std::numeric_limits<type>::max()},
#include "host/base/integer_type.def"
#undef NUMSAN_INTEGER_TYPE
};

constexpr const IntegerTypeInfo& info(IntegerType type) { return kIntegerTypes[static_cast<int>(type)]; }

}  // namespace numsan
