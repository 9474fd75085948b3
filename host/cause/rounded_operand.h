// Which operator had rounded an operand to a limit of its own, as softmax, sigmoid, tanh, exp and erf do: a logarithm,
// a root or a quotient of the limit is not finite. [MT]
#pragma once

#include <string>

#include "host/base/adapter_abi.h"
#include "host/base/ids.h"
#include "host/finding/tensor_fact.h"
#include "host/ops/op_traits.h"

namespace numsan {

class Lineage;

struct RoundedOperand {
    std::string op = {};  ///< plain name; empty where there is none
    // What was done with its results before they became the operand.
    bool summed = false;
    bool matrix_product = false;
    bool subtracted = false;  ///< from something, or something from them; also as their negative
};

/// The nearest op upstream of `operand`, which `reader` blames for its result. Of several on different ways, where the
/// limit is zero, the one whose results came much nearer to zero. `fact`: of the operand, null where it was not
/// scanned.
RoundedOperand rounded_operand(const OpTraits& reader, const TensorView& operand, const TensorFact* fact, OpSeq seq,
                               const Lineage& lineage);

}  // namespace numsan
