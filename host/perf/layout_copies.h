// Copies of a matrix with rows and columns exchanged, for a product that takes it as it lies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/base/ids.h"
#include "host/ops/op_traits.h"
#include "host/perf/storage_slots.h"
#include "host/stacks/stack_source.h"
#include "host/track/lineage.h"

namespace numsan {

/// Of one thread. A copy of a transposed matrix, or of a batch of them, in a type that BLAS multiplies, is needless
/// where a matrix product reads it as it is, no other op of the forward pass does, and the matrix was not written in
/// between. Where others read it, too, the copy may be worth it. Constant memory.
class LayoutCopies {
  public:
    struct Copy {
        const void* storage = nullptr;
        OpSeq written = OpSeq::None;
        int64_t ns = 0;
        StackId stack = 0;
        const OpInfo* op = nullptr;
        const void* source = nullptr;
        OpSeq source_written = OpSeq::None;
        const void* data = nullptr;
        int64_t numel = 0;
        int64_t rows = 0, columns = 0;
        int16_t ndim = 0;
        bool told = false;
    };

    /// Before the lineage knows of the op: calls needless(copy) where it is the product that reads such a copy first,
    /// of_use(copy) where one of which that was said is read again.
    template <class Needless, class OfUse>
    void reads(const OpEvent& event, const Lineage& lineage, Needless&& needless, OfUse&& of_use) noexcept {
        for (int32_t i = 0; i < event.input_count; ++i) {
            const TensorView& input = event.inputs[i];
            Copy& copy = copies_[input.storage];
            if (copy.storage == nullptr || copy.storage != input.storage) continue;
            const bool holds = copy.written == lineage.written_at(copy.storage);
            const bool first = holds && !copy.told && is_factor(event, i) && is_whole(input, copy) &&
                               copy.source_written == lineage.written_at(copy.source);
            if (first) needless(copy);
            if (holds && copy.told) of_use(copy);
            copy.told = first;
            if (!first) copy = {};
        }
    }

    /// Once the lineage knows of the op. `stack` is asked for such a copy only.
    template <class Capture>
    void remember(const OpEvent& event, int64_t ns, const Lineage& lineage, Capture&& stack) noexcept {
        if (!is_transposing(event)) return;
        const TensorView& from = event.inputs[0];
        const TensorView& to = event.outputs[0];
        const OpSeq source_written = lineage.written_at(from.storage);
        if (source_written == OpSeq::None) return;  // others may write it unseen
        Copy& copy = copies_[to.storage];
        copy = {to.storage, lineage.written_at(to.storage), ns, stack(), event.op, from.storage, source_written,
                to.data};
        copy.numel = to.numel;
        copy.rows = to.sizes[to.ndim - 2];
        copy.columns = to.sizes[to.ndim - 1];
        copy.ndim = to.ndim;
    }

  private:
    /// One of the two operands of a product of matrices, both of as many dimensions.
    static bool is_factor(const OpEvent& event, int32_t at) noexcept {
        const int32_t n = event.input_count;
        return n >= 2 && at >= n - 2 && is_matrix_product(traits_of(event)) &&
               event.inputs[n - 1].ndim == event.inputs[n - 2].ndim;
    }
    /// A view has other dimensions, which the matrix as it lay may not have.
    static bool is_whole(const TensorView& input, const Copy& copy) noexcept {
        const int16_t n = input.ndim;
        return n == copy.ndim && input.data == copy.data && input.numel == copy.numel &&
               input.sizes[n - 2] == copy.rows && input.sizes[n - 1] == copy.columns && input.strides[n - 1] == 1 &&
               input.strides[n - 2] == copy.columns;
    }

    static bool is_transposing(const OpEvent& event) noexcept {
        if (event.input_count != 1 || event.output_count != 1) return false;
        const TensorView& from = event.inputs[0];
        const TensorView& to = event.outputs[0];
        const int16_t n = from.ndim;
        if ((n != 2 && n != 3) || to.ndim != n || from.numel != to.numel || (to.flags & kWritten) != 0 ||
            (from.flags & to.flags & kScannable) == 0 || from.dtype != to.dtype || from.storage == to.storage ||
            (from.dtype != DType::Float32 && from.dtype != DType::Float64) || plain_op_name(event.op->name) != "clone")
            return false;
        for (int16_t i = 0; i < n; ++i) {
            if (from.sizes[i] != to.sizes[i]) return false;
        }
        // Columns lie one after another: a leading dimension says how far apart.
        const int64_t rows = from.sizes[n - 2];
        const int64_t columns = from.sizes[n - 1];
        return rows >= 2 && columns >= 2 && from.strides[n - 2] == 1 && from.strides[n - 1] >= rows &&
               to.strides[n - 1] == 1 && to.strides[n - 2] == columns;
    }

    StorageSlots<Copy, 64> copies_;
};

}  // namespace numsan
