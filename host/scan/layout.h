// Turns sizes and strides into the runs of memory that a pass visits. No allocation: everything is in fixed arrays.
#pragma once

#include <cstdint>

#include "host/base/tensor_view.h"

namespace numsan {

/// A tensor has at most this many dimensions of size two or more: its number of elements fits in 63 bits, and each
/// doubles it.
inline constexpr int kMaxDims = 64;

/// One dimension of a walk. `stride` is in bytes; `weight` is how far one step moves the logical (row-major) index.
struct WalkDim {
    int64_t size;
    int64_t stride;
    int64_t weight;
};

/// A nest of loops, innermost first, that visits every distinct position of a tensor. Only the first `ndim` entries are
/// set.
struct Layout {
    const unsigned char* base;
    int64_t repeat;  ///< every position stands for this many logical elements (dimensions of stride 0)
    int ndim;        ///< at least 2 (padded with dimensions of size 1), 0 when there is nothing to visit
    WalkDim dims[kMaxDims];
};

/// Two innermost loops of a layout, as one call of a kernel takes them. Strides are in bytes.
struct Block {
    const unsigned char* base;
    int64_t columns;
    int64_t column_stride;
    int64_t rows;
    int64_t row_stride;
};

/// The number of elements when `tensor` is row-major without gaps (sizes of 1 may have any stride), else -1.
inline int64_t contiguous_elements(const TensorView& tensor) {
    if (tensor.numel == 0 || (tensor.flags & kContiguous) != 0) return tensor.numel;
    int64_t expected = 1;
    bool contiguous = true;
    for (int d = tensor.ndim - 1; d >= 0; --d) {
        const int64_t size = tensor.sizes[d];
        if (size == 1) continue;
        contiguous = contiguous && tensor.strides[d] == expected;
        expected *= size;
    }
    return contiguous ? expected : -1;
}

/// Real lanes in the order of their addresses: what a pass that does not care for order wants. Dense storage in any
/// permutation becomes one run. Weights are not set.
Layout memory_order(const TensorView& tensor);

/// Elements in row-major order, the earliest of equal positions only (`repeat` is 1): what a search for an index wants.
Layout logical_order(const TensorView& tensor);

/// Calls `visit(const Block&, int64_t weight_of_block)` for every position of the outer loops, in order, until it
/// returns false.
template <class Visit>
void for_each_block(const Layout& layout, Visit visit) {
    if (layout.ndim == 0) return;
    Block block{layout.base, layout.dims[0].size, layout.dims[0].stride, layout.dims[1].size, layout.dims[1].stride};
    int64_t position[kMaxDims];
    for (int d = 2; d < layout.ndim; ++d) position[d] = 0;
    int64_t weight = 0;
    for (;;) {
        if (!visit(static_cast<const Block&>(block), weight)) return;
        int d = 2;
        for (; d < layout.ndim; ++d) {
            const WalkDim& dim = layout.dims[d];
            if (++position[d] < dim.size) {
                block.base += dim.stride;
                weight += dim.weight;
                break;
            }
            position[d] = 0;
            block.base -= dim.stride * (dim.size - 1);
            weight -= dim.weight * (dim.size - 1);
        }
        if (d >= layout.ndim) return;
    }
}

}  // namespace numsan
