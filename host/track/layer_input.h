// Which operand of a layer's op is the layer's input, and which are its weights.
#pragma once

#include <cstdint>

#include "host/ops/op_traits.h"
#include "host/track/op_context.h"

namespace numsan {

/// True where a parameter, or a view of one, is applied to this operand: the first factor of a matrix product, the
/// values of a convolution or a normalisation. A batch that requires a gradient is a leaf as a parameter is; its place
/// shows which it is. Of a product of two parameters the first counts as an input, too.
inline bool is_layer_input(const OpEvent& event, const OpContext& context, int32_t index) {
    const auto is_weight = [&](int32_t i) {
        const TensorView& input = event.inputs[i];
        return is_parameter(input) || (autograd_facts_of(context, input, i) & kViewOfParameter) != 0;
    };
    const OpTraits& op = traits_of(event);
    if (is_matrix_product(op)) return index == event.input_count - 2 && is_weight(index + 1);
    if (index != 0 || !op.has(kLayer)) return false;
    for (int32_t i = 1; i < event.input_count; ++i) {
        if (is_weight(i)) return true;
    }
    return false;
}

}  // namespace numsan
