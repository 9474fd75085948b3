// How large a tensor was in a step before its finding.
#pragma once

#include <cstdint>
#include <optional>

namespace numsan {

/// Largest finite magnitude of a step; none where nothing finite is known.
struct PastMagnitude {
    int64_t step = 0;
    std::optional<double> absmax;
};

}  // namespace numsan
