// What was measured at a birth: which mechanism (a row of mechanisms.def) made a bad value out of good operands.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/analyze/mechanisms.h"
#include "host/analyze/tensor_fact.h"

namespace numsan {

struct MechanismFacts {
    std::string_view op;  ///< "aten::log_"
    KindSet kind = 0;
    bool backward = false;
    bool diverging = false;  ///< the loss grew over the last steps (see LossHistory)
    DType dtype = DType::Float32;
    const std::vector<TensorFact>* inputs = nullptr;  ///< operands, all finite
    int32_t gone = 0;                                 ///< operands of which nothing is known
};

struct MechanismVerdict {
    Mechanism mechanism;
    std::vector<std::string> evidence;  ///< one measured fact each
};

/// Pure. The operator's name decides which operand can hurt; the operand's values decide whether it did.
MechanismVerdict mechanism_of(const MechanismFacts& facts);

/// An op whose results have these kinds only if its operands were not finite; if that cannot be said, false.
bool hands_on_only(std::string_view op, KindSet kinds, DType dtype);

/// The kinds that leave the result not finite wherever operand number `operand` has them. None where nothing is known.
KindSet kept_kinds(std::string_view op, int32_t operand);

/// False: certain_kinds() knows nothing of such ops.
bool may_be_certain(std::string_view op);

/// The kinds that an op must make of finite operands with these facts; none when that depends on more than the facts
/// say.
KindSet certain_kinds(std::string_view op, std::span<const Health> operands, std::span<const double> scalars,
                      DType dtype);

/// "aten::add_.Tensor" -> "add": namespace, in-place underscore and foreach prefix removed.
std::string plain_op_name(std::string_view op);

}  // namespace numsan
