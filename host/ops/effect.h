// The transfer function of operators: what one makes of operands in given ranges.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "host/base/dtype.h"
#include "host/base/health.h"
#include "host/ops/op_traits.h"

namespace numsan {

/// What is known of one operand.
struct Operand {
    Health health{};
    bool known = true;               ///< false: `health` says nothing
    std::span<const int64_t> shape;  ///< empty where that is not known either
};

/// One call of an operator.
struct OpCall {
    const OpTraits& op;
    std::span<const Operand> operands;  ///< tensors, in the order of the arguments
    std::span<const double> scalars;    ///< numbers, in the order of the arguments
    DType dtype = DType::Float32;       ///< of the result
    int64_t results = 0;                ///< elements of the result; 0: not known
};

struct Effect {
    KindSet must = 0;              ///< kinds that some result has, by the ranges of the operands alone
    KindSet may = kNaN | kAnyInf;  ///< kinds that a result may have where every operand is finite
    std::optional<double> bound;   ///< no result is larger in magnitude if numbers have no largest value
    int blamed = -1;               ///< operand that explains a result which is not finite; -1: the largest one
};

/// Pure. `must` and `bound` say nothing where an operand that they depend on is not known.
Effect effect(const OpCall& call);

/// Whether `must` of this operator can say anything.
bool is_decided_by_ranges(const OpTraits& op);

/// Products that one result adds up, at most; 1 for an operator that adds up none.
double terms_of(const OpCall& call);

}  // namespace numsan
