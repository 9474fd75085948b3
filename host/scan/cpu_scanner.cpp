// Chooses the walk for a tensor and turns what the kernels gathered into a Range.
#include "host/scan/cpu_scanner.h"

#include <algorithm>

#include "host/scan/exact_pass.h"
#include "host/scan/exponent_pass.h"
#include "host/scan/kinds_kernels.h"
#include "host/scan/layout.h"
#include "host/scan/range_kernels.h"

namespace numsan {
namespace {

// Out of line: a layout takes a few cache lines of stack that a contiguous tensor need not pay for.
[[gnu::noinline]] void gather_strided(const TensorView& tensor, const DTypeInfo& type, RangeState& state) {
    const Layout layout = memory_order(tensor);
    for_each_block(layout, [&](const Block& block, int64_t) {
        gather_range(type, block, state);
        return true;
    });
}

/// One run of lanes, cut into one piece a thread. Each thread writes to a cache line of its own.
struct Shared {
    static constexpr int kMaxParts = 64;
    struct alignas(64) Slot {
        RangeState state;
    };
    const DTypeInfo& type;
    const unsigned char* data;
    int64_t lanes;
    Slot slots[kMaxParts];
};

/// The pieces are those that torch gives its threads: what this thread has just written may still be in its cache, and
/// of that the end rather than the beginning.
void gather_part(void* data, int part, int parts) {
    Shared& shared = *static_cast<Shared*>(data);
    parts = std::min(parts, Shared::kMaxParts);
    if (part >= parts) return;
    const int64_t piece = (shared.lanes + parts - 1) / parts;
    const int64_t begin = std::min(shared.lanes, part * piece);
    int64_t end = std::min(shared.lanes, begin + piece);
    const int64_t stretch = (int64_t(1) << 18) / shared.type.lane_bytes;
    RangeState state;
    while (end > begin) {
        const int64_t from = std::max(begin, end - stretch);
        gather_range(shared.type, shared.data + from * shared.type.lane_bytes, end - from, state);
        end = from;
    }
    shared.slots[part].state = state;
}

void merge(const RangeState& from, RangeState& into) {
    into.largest = std::max(into.largest, from.largest);
    into.smallest_less_one = std::min(into.smallest_less_one, from.smallest_less_one);
    into.negative_zero = into.negative_zero || from.negative_zero;
}

}  // namespace

Range CpuScanner::range(const TensorView& tensor) const noexcept {
    if (tensor.data == nullptr) return Range{0, ~uint64_t(0), false};
    const DTypeInfo& type = info(tensor.dtype);
    const int64_t elements = contiguous_elements(tensor);
    if (elements > 0) return range_of_run(tensor.dtype, tensor.data, elements * type.lanes);
    RangeState state;
    if (elements < 0) gather_strided(tensor, type, state);
    return range_of(type, state);
}

Range CpuScanner::shared_range(const TensorView& tensor, ShareWork share) const noexcept {
    const DTypeInfo& type = info(tensor.dtype);
    Shared shared{type, nullptr, 0, {}};
    if (const int64_t elements = contiguous_elements(tensor); elements >= 0) {
        shared.data = static_cast<const unsigned char*>(tensor.data);
        shared.lanes = elements * type.lanes;
    } else if (const Layout layout = memory_order(tensor);
               layout.ndim == 2 && layout.dims[0].stride == type.lane_bytes && layout.dims[1].size == 1) {
        shared.data = layout.base;  // dense in another order of its dimensions: channels last
        shared.lanes = layout.dims[0].size;
    }
    if (shared.data == nullptr || shared.lanes == 0 || !share(gather_part, &shared)) return range(tensor);
    RangeState state;
    for (const Shared::Slot& slot : shared.slots) merge(slot.state, state);
    return range_of(type, state);
}

KindSet CpuScanner::kinds(const TensorView& tensor) const noexcept {
    const DTypeInfo& type = info(tensor.dtype);
    const int64_t elements = tensor.data == nullptr ? 0 : contiguous_elements(tensor);
    if (elements <= 0 || type.infinity != InfinityKind::IEEE) return health(tensor).kinds();
    return gather_kinds(type, tensor.data, elements * type.lanes);
}

Health CpuScanner::health(const TensorView& tensor) const noexcept { return exact_health(tensor); }

ExponentCounts CpuScanner::exponents(const TensorView& tensor) const noexcept { return exponent_counts(tensor); }

}  // namespace numsan
