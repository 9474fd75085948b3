// What was measured at a birth: which mechanism (a row of mechanisms.def) made a bad value out of good operands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/finding/mechanisms.h"
#include "host/finding/tensor_fact.h"

namespace numsan {

struct MechanismFacts {
    std::string_view op;  ///< "aten::log_"
    KindSet kind = 0;
    bool backward = false;
    bool diverging = false;  ///< the loss grew over the last steps (see LossHistory)
    DType dtype = DType::Float32;
    const std::vector<TensorFact>* inputs = nullptr;  ///< operands, all finite
    int32_t unavailable = 0;                          ///< operands of which nothing is known
};

struct MechanismVerdict {
    Mechanism mechanism;
    std::vector<std::string> evidence;  ///< one measured fact each
};

/// Pure. The operator's name decides which operand can hurt; the operand's values decide whether it did.
MechanismVerdict mechanism_of(const MechanismFacts& facts);

}  // namespace numsan
