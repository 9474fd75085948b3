// One tensor of an op as reports show it: its type, its shape and what its values are and were.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/base/dtype.h"
#include "host/base/exponent_counts.h"
#include "host/base/health.h"

namespace numsan {

/// `health` is empty when the values were gone (overwritten in place) before they were
/// looked at.
struct TensorFact {
    std::string name;  ///< "input[0]", "output[0]"
    DType dtype = DType::Float32;
    std::vector<int64_t> shape;
    std::string device = "cpu";
    Health health{};
    bool exact = true;
    std::string remark = {};  ///< what about an operand explains the result; empty where nothing more is to be said
    ExponentCounts exponents = {};  ///< of the operand that explains the result, where it could be counted
};

/// The largest finite magnitude of a tensor in a step before its finding; none where nothing finite is known.
struct PastMagnitude {
    int64_t step = 0;
    std::optional<double> absmax;
};

}  // namespace numsan
