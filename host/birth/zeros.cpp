#include "host/birth/zeros.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "host/base/thresholds.h"
#include "host/cause/measure.h"
#include "host/log/format.h"
#include "host/ops/op_traits.h"
#include "host/track/elements.h"

namespace numsan {
namespace {

/// One tensor, and a number of the program's: it is scaled, and nothing else is.
bool by_number(const OpEvent& event) {
    const auto is_tensor = [](const TensorView& t) { return (t.flags & kNumber) == 0; };
    return std::count_if(event.inputs, event.inputs + event.input_count, is_tensor) < 2 && event.output_count == 1;
}

}  // namespace

bool mutes(const OpEvent& event, const Birth& overflow) {
    if (overflow.mechanism != Mechanism::OVF && overflow.mechanism != Mechanism::HYPER) return false;
    const OpTraits& op = traits_of(event);
    const bool exponential = is_exponential(traits_of(overflow.features.op));
    if (op.form == Form::InverseRoot) return !exponential;
    if (!op.is({Form::Divide, Form::Reciprocal})) return false;
    if (overflow.through_root) return !exponential;
    const double would_be = overflow.features.result_estimate;
    return would_be > 0 &&
           would_be <= magnitude_value(info(overflow.features.dtype).exponent_mask() - 1, overflow.features.dtype);
}

bool multiplies(const OpEvent& event) {
    const OpTraits& op = traits_of(event);
    return is_matrix_product(op) || op.form == Form::Convolve || (op.form == Form::Multiply && !by_number(event));
}

bool hands_zeros_on(const OpEvent& event) {
    const OpTraits& op = traits_of(event);
    return event.op->op_class == OpClass::Preserving || op.has(kKeepsZeros) || op.form == Form::Multiply;
}

bool asks_for_zeros(const OpEvent& event) {
    const OpTraits& op = traits_of(event);
    const bool narrow = std::any_of(event.outputs, event.outputs + event.output_count,
                                    [](const TensorView& t) { return info(t.dtype).is_narrow(); });
    if (narrow && may_flush(op)) return true;
    return op.is({Form::Divide, Form::InverseRoot, Form::Reciprocal}) || hands_zeros_on(event);
}

}  // namespace numsan
