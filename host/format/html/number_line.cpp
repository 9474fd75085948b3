#include "host/format/html/number_line.h"

#include <algorithm>
#include <cmath>

#include "host/base/value_classes.h"
#include "host/log/format.h"

namespace numsan::html {

std::optional<NumberLine> NumberLine::of(const std::string& dtype) {
    const std::optional<DType> known = dtype_of(dtype);
    if (!known) return std::nullopt;
    const DTypeInfo& type = info(*known);
    const uint64_t smallest = type.has_zero() ? 1 : 0;
    const uint64_t normal = std::max<uint64_t>(value_classes(type).smallest_normal, smallest);
    return NumberLine(largest_value(*known), decode_magnitude(normal, type), decode_magnitude(smallest, type));
}

double NumberLine::place(double magnitude) const {
    const double low = std::log2(smallest_);
    const double share = 100 * (std::log2(magnitude) - low) / (std::log2(largest_) - low);
    return std::isfinite(share) ? std::clamp(share, 0.0, 100.0) : 0;
}

std::string percent(double share) { return fixed(share, 2) + "%"; }

}  // namespace numsan::html
