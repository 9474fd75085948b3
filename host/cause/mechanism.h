// What was measured at a birth: which mechanism (a row of mechanisms.def) made a bad value out of good operands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/finding/mechanisms.h"
#include "host/finding/tensor_fact.h"
#include "host/track/parameter_history.h"

namespace numsan {

struct MechanismFacts {
    std::string_view op;  ///< "aten::log_"
    KindSet kind = 0;
    bool backward = false;
    DType dtype = DType::Float32;
    const std::vector<TensorFact>* inputs = nullptr;  ///< operands, all finite
    int32_t unavailable = 0;                          ///< operands of which nothing is known
    double loss_growth = 0;                 ///< of a loss that diverges, over the last steps (see LossHistory), else 0
    ParameterGrowth parameter_growth = {};  ///< the largest of all parameters
};

struct MechanismVerdict {
    Mechanism mechanism;
    std::vector<std::string> evidence;  ///< one measured fact each
};

/// Pure. The operator's name decides which operand can hurt; the operand's values decide whether it did.
MechanismVerdict mechanism_of(const MechanismFacts& facts);

}  // namespace numsan
