#include "host/track/integers.h"

#include <algorithm>

#include "host/track/elements.h"

namespace numsan {
namespace {

constexpr int64_t kMaxElements = 1 << 16;

template <class T>
long double load(const void* data, int64_t offset) {
    T value;
    load_element(static_cast<const char*>(data) + offset * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
    return static_cast<long double>(value);
}

}  // namespace

long double integer_at(const TensorView& t, int64_t offset) {
    switch (t.integer) {
#define NUMSAN_INTEGER_TYPE(id, name, type) \
    case IntegerType::id:                   \
        return load<type>(t.data, offset);
#include "host/base/integer_type.def"
#undef NUMSAN_INTEGER_TYPE
        default: return 0;
    }
}

std::optional<Health> integer_health(const TensorView& t) {
    if (!holds_integers(t) || t.numel > kMaxElements) return std::nullopt;
    Health health{};
    health.elements = health.finite = t.numel;
    health.first_bad = -1;
    for (int64_t i = 0; i < t.numel; ++i) {
        const auto value = static_cast<double>(integer_at(t, offset_of(t, i)));
        const double magnitude = value < 0 ? -value : value;
        health.min = i == 0 ? value : std::min(health.min, value);
        health.max = i == 0 ? value : std::max(health.max, value);
        health.absmax = std::max(health.absmax, magnitude);
        if (magnitude == 0) {
            ++health.zero;
        } else {
            health.absmin = health.absmin == 0 ? magnitude : std::min(health.absmin, magnitude);
        }
    }
    return health;
}

}  // namespace numsan
