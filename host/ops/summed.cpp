#include "host/ops/summed.h"

#include <algorithm>

#include "host/ops/op_traits.h"

namespace numsan {
namespace {

/// What is multiplied for one element of the result: a row of the left matrix.
int64_t inner_dimension(const TensorView& left) noexcept { return left.ndim > 0 ? left.sizes[left.ndim - 1] : 1; }

/// A channel of the weight.
int64_t window(const TensorView& weight) noexcept {
    return weight.ndim > 0 && weight.sizes[0] > 0 ? weight.numel / weight.sizes[0] : 1;
}

}  // namespace

int64_t summed(const OpEvent& event, const TensorView& output) noexcept {
    const OpTraits& op = traits_of(event);
    int64_t count = 1;
    if (is_matrix_product(op)) {
        const int32_t left = op.form == Form::AddMatrixProduct ? 1 : 0;
        if (left < event.input_count) count = inner_dimension(event.inputs[left]);
    } else if (op.form == Form::Convolve) {
        if (event.input_count > 1) count = window(event.inputs[1]);
    } else if ((op.has(kReduces) || op.has(kLoss)) && op.form != Form::Extreme && event.input_count > 0) {
        count = event.inputs[0].numel / std::max<int64_t>(output.numel, 1);
    }
    return std::max<int64_t>(count, 1);
}

}  // namespace numsan
