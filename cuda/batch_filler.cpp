// Shapes become runs of memory or nests of dimensions; batches become chunks of equal size.
#include "cuda/batch_filler.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "cuda/kernel/range_walk.cuh"

namespace numsan::gpu {
namespace {

uint64_t element_bytes(const ScanItem& item) { return info(item.dtype).element_bytes(); }

uint32_t item_chunks(const ScanItem& item, uint32_t chunk_log2) {
    return item.positions != 0 ? chunks_of(loads_of(item, element_bytes(item)), chunk_log2) : 0;
}

// Whether the dimensions leave no byte between the first and the last element out.
bool one_run(const ScanDim* dims, int ndim, int64_t bytes) {
    for (int d = 0; d < ndim; ++d) {
        if (dims[d].stride != bytes) return false;
        bytes *= dims[d].size;
    }
    return true;
}

// The largest load that divides every run of memory and starts at a multiple of itself everywhere.
void choose_unit(ScanItem& item, const ScanDim* dims) {
    const uint64_t bytes = element_bytes(item);
    const bool run = dims[0].stride == static_cast<int64_t>(bytes);
    uint64_t steps =
        reinterpret_cast<uintptr_t>(item.data) | (run ? bytes * static_cast<uint64_t>(dims[0].size) : bytes) | 16;
    for (int d = run ? 1 : 0; d < item.ndim; ++d) {
        steps |= static_cast<uint64_t>(dims[d].stride);
    }
    item.unit_log2 = static_cast<uint8_t>(std::countr_zero(steps));
    item.flags = static_cast<uint8_t>(item.flags | kGaps | (run ? kRun : 0));
}

}  // namespace

Admission describe(const TensorView& view, ScanItem& item, ScanDim (&dims)[kMaxScanDims]) noexcept {
    const DTypeInfo& type = info(view.dtype);
    const int64_t bytes = type.element_bytes();
    item.data = view.data;
    item.dtype = view.dtype;
    item.positions = 1;
    item.repeat = 1;
    item.ndim = 0;
    item.flags = static_cast<uint8_t>(item.flags & ~(kGaps | kRun));
    item.unit_log2 = 0;
    for (int d = 0; d < view.ndim; ++d) {
        if (view.sizes[d] == 0) return Admission::Empty;
    }
    if (view.data == nullptr || reinterpret_cast<uintptr_t>(view.data) % type.lane_bytes != 0)
        return Admission::Unsupported;

    ScanDim sorted[kMaxScanDims * 4];
    int count = 0;
    int64_t weight = 1;
    for (int d = view.ndim - 1; d >= 0; --d) {
        const int64_t size = view.sizes[d];
        if (size == 1) continue;  // its stride means nothing, and may be any number
        const int64_t stride = view.strides[d] * bytes;
        if (size < 0 || stride < 0 || count == kMaxScanDims * 4) return Admission::Unsupported;
        if (stride == 0) {
            item.repeat *= static_cast<uint64_t>(size);
        } else {
            int at = count++;
            for (; at > 0 && sorted[at - 1].stride > stride; --at) sorted[at] = sorted[at - 1];
            sorted[at] = ScanDim{size, stride, weight};
            item.positions *= static_cast<uint64_t>(size);
        }
        weight *= size;
    }
    int ndim = 0;
    for (int i = 0; i < count; ++i) {
        ScanDim* last = ndim > 0 ? &dims[ndim - 1] : nullptr;
        if (last != nullptr && sorted[i].stride == last->stride * last->size &&
            sorted[i].weight == last->weight * last->size) {
            last->size *= sorted[i].size;
        } else if (ndim < kMaxScanDims) {
            dims[ndim++] = sorted[i];
        } else {
            return Admission::Unsupported;
        }
    }
    const bool row_major = ndim == 0 || (ndim == 1 && dims[0].stride == bytes && dims[0].weight == 1);
    if (row_major) return Admission::Added;
    item.ndim = static_cast<uint8_t>(ndim);
    if (!one_run(dims, ndim, bytes)) choose_unit(item, dims);
    return Admission::Added;
}

void BatchFiller::begin(const ScanHeader& header) noexcept {
    table_.header = header;
    table_.header.outputs = 0;
    table_.header.inputs = 0;
    table_.header.chunks = 0;
    inputs_ = 0;
    dims_ = 0;
}

InputItems BatchFiller::add_inputs(const TensorView* views, int count, int limit) noexcept {
    InputItems added;
    uint8_t readable[255];
    int readables = 0;
    for (int i = 0; i < std::min(count, 255) && readables < limit; ++i) {
        if ((views[i].flags & kScannable) != 0) readable[readables++] = static_cast<uint8_t>(i);
    }
    int room = ScanTableLarge::kItemCapacity - table_.header.outputs - inputs_ - 1;  // one output has to follow
    for (int r = readables - 1; r >= 0 && room > 0; --r) {
        const uint8_t i = readable[r];
        ScanItem item{};
        ScanDim dims[kMaxScanDims];
        if (describe(views[i], item, dims) != Admission::Added) continue;
        if (dims_ + item.ndim > ScanTableLarge::kDimCapacity) continue;
        item.argument = i;
        item.first_dim = static_cast<uint16_t>(dims_);
        std::copy_n(dims, item.ndim, table_.dims + dims_);
        dims_ += item.ndim;
        ++inputs_;
        --room;
        added.first = static_cast<uint16_t>(ScanTableLarge::kItemCapacity - inputs_);
        ++added.count;
        table_.items[added.first] = item;
    }
    table_.header.inputs = static_cast<uint16_t>(inputs_);
    return added;
}

bool BatchFiller::has_room(int tensors) const noexcept {
    return table_.header.outputs + inputs_ + tensors <= ScanTableLarge::kItemCapacity &&
           dims_ + tensors * kMaxScanDims <= ScanTableLarge::kDimCapacity;
}

Admission BatchFiller::add(const TensorView& view, uint32_t slot, uint32_t order, uint8_t flags,
                           InputItems inputs) noexcept {
    ScanItem item{};
    ScanDim dims[kMaxScanDims];
    const Admission admission = describe(view, item, dims);
    if (admission != Admission::Added) return admission;
    ScanHeader& header = table_.header;
    if (header.outputs + inputs_ >= ScanTableLarge::kItemCapacity || dims_ + item.ndim > ScanTableLarge::kDimCapacity) {
        return Admission::Full;
    }
    item.flags = static_cast<uint8_t>(item.flags | (flags & (kRaisesGate | kExact)));
    item.slot = slot;
    item.order = order;
    item.first_input = inputs.first;
    item.inputs = inputs.count;
    item.argument = static_cast<uint8_t>(std::clamp<int>(view.argument, 0, 255));
    item.first_dim = static_cast<uint16_t>(dims_);
    std::copy_n(dims, item.ndim, table_.dims + dims_);
    dims_ += item.ndim;
    table_.items[header.outputs++] = item;
    return Admission::Added;
}

bool BatchFiller::close(int64_t alone) noexcept {
    ScanHeader& header = table_.header;
    uint64_t all = 0, in_gaps = 0, of_small = 0;
    for (int i = 0; i < header.outputs; ++i) {
        const ScanItem& item = table_.items[i];
        if (item.positions == 0) continue;
        const uint64_t loads = loads_of(item, element_bytes(item));
        const bool gaps = (item.flags & kGaps) != 0;
        all += loads;
        if (gaps) in_gaps += loads;
        if (gaps || loads < kWholeGridPackets) of_small += loads;
    }
    header.chunk_log2 = chunk_log2(of_small, 2 * in_gaps > all);
    header.chunks = 0;
    for (int i = 0; i < header.outputs; ++i) {
        ScanItem& item = table_.items[i];
        item.first_chunk = header.chunks;
        header.chunks += item_chunks(item, header.chunk_log2);
    }
    if (!needs_look(alone)) header.looks = nullptr;
    header.look_chunks = header.chunks;
    for (int i = 0; header.looks != nullptr && i < inputs_; ++i)
        header.look_chunks += item_chunks(table_.items[ScanTableLarge::kItemCapacity - 1 - i], header.chunk_log2);
    return header.chunks != 0;
}

/// Whether an output and its operands are too much for one block. A look has a bit for an output.
bool BatchFiller::needs_look(int64_t alone) const noexcept {
    if (table_.header.outputs > kBatchOutputs) return false;
    for (int i = 0; i < table_.header.outputs; ++i) {
        const ScanItem& output = table_.items[i];
        uint64_t bytes = output.positions * element_bytes(output);
        for (int k = 0; k < output.inputs; ++k) {
            const ScanItem& input = table_.items[output.first_input + k];
            bytes += input.positions * element_bytes(input);
        }
        const bool always = (output.flags & kExact) != 0;
        if (output.positions != 0 && bytes > uint64_t(always ? kAlwaysAloneBytes : alone)) return true;
    }
    return false;
}

bool BatchFiller::fits_small() const noexcept {
    return table_.header.outputs + inputs_ <= ScanTableSmall::kItemCapacity && dims_ <= ScanTableSmall::kDimCapacity;
}

const ScanTableSmall& BatchFiller::small() noexcept {
    constexpr int kMoved = ScanTableLarge::kItemCapacity - ScanTableSmall::kItemCapacity;
    small_.header = table_.header;
    for (int i = 0; i < table_.header.outputs; ++i) {
        small_.items[i] = table_.items[i];
        if (small_.items[i].inputs != 0)
            small_.items[i].first_input = static_cast<uint16_t>(small_.items[i].first_input - kMoved);
    }
    std::copy_n(table_.items + ScanTableLarge::kItemCapacity - inputs_, inputs_,
                small_.items + ScanTableSmall::kItemCapacity - inputs_);
    std::copy_n(table_.dims, dims_, small_.dims);
    return small_;
}

}  // namespace numsan::gpu
