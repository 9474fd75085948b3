// What about an operand explains a result that is not finite.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "host/base/dtype.h"
#include "host/base/health.h"
#include "host/finding/mechanisms.h"
#include "host/finding/tensor_fact.h"

namespace numsan {

/// The divisor has no zero, and is so close to it that what it divides leaves the range of `dtype`, and the dividend is
/// of ordinary size or the divisor is not.
bool divisor_near_zero(std::string_view op, KindSet kind, DType dtype, const std::vector<TensorFact>& operands);

/// Gives every operand whose values explain what `op` made a remark of a few words. Counts of zeros, subnormals and
/// values that are not finite speak for themselves.
void remark_on(std::vector<TensorFact>& operands, std::string_view op, Mechanism mechanism, KindSet kind, DType dtype);

}  // namespace numsan
