// Which operand of a layer's op is the layer's input, and not one of its weights.
#pragma once

#include <cstdint>

#include "host/ops/op_traits.h"
#include "host/track/op_context.h"

namespace numsan {

/// True where a layer's weights are applied to this operand: the values of a convolution or a normalisation, and the
/// first factor of a product whose second is a view of a parameter, as torch.nn.Linear transposes its weight. A batch
/// that requires a gradient is a leaf as a parameter is; its place shows which it is. In a product of two leaves either
/// may be a weight.
inline bool is_layer_input(const OpEvent& event, const OpContext& context, int32_t index) {
    const OpTraits& op = traits_of(event);
    if (is_matrix_product(op)) {
        if (index != event.input_count - 2) return false;
        const TensorView& weight = event.inputs[index + 1];
        return !is_parameter(weight) && holds_parameter(context, weight, index + 1);
    }
    const bool normalises = op.has(kLayer) && op.has(kReduces);
    if (index != 0 || (op.form != Form::Convolve && !normalises)) return false;
    for (int32_t i = 1; i < event.input_count; ++i) {
        if (holds_parameter(context, event.inputs[i], i)) return true;
    }
    return false;
}

}  // namespace numsan
