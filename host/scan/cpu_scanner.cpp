// Chooses the walk for a tensor and turns what the kernels gathered into a Range.
#include "host/scan/cpu_scanner.h"

#include "host/scan/exact_pass.h"
#include "host/scan/kinds_kernels.h"
#include "host/scan/layout.h"
#include "host/scan/range_kernels.h"

namespace numsan {
namespace {

bool is_suspicious(const DTypeInfo& type, const RangeState& state) {
    switch (type.infinity) {
        case InfinityKind::FN: return state.largest == type.magnitude_mask();
        case InfinityKind::FNUZ: return state.negative_zero;
        default: return state.largest >= type.exponent_mask();
    }
}

// Out of line: a layout takes a few cache lines of stack that a contiguous tensor need not pay for.
[[gnu::noinline]] void gather_strided(const TensorView& tensor, const DTypeInfo& type, RangeState& state) {
    const Layout layout = memory_order(tensor);
    for_each_block(layout, [&](const Block& block, int64_t) {
        gather_range(type, block, state);
        return true;
    });
}

}  // namespace

Range CpuScanner::range(const TensorView& tensor) const noexcept {
    if (tensor.data == nullptr) return Range{0, ~uint64_t(0), false};
    const DTypeInfo& type = info(tensor.dtype);
    RangeState state;
    const int64_t elements = contiguous_elements(tensor);
    if (elements > 0) {
        gather_range(type, tensor.data, elements * type.lanes, state);
    } else if (elements < 0) {
        gather_strided(tensor, type, state);
    }
    const uint64_t smallest = state.smallest_less_one == ~uint64_t(0) ? ~uint64_t(0) : state.smallest_less_one + 1;
    return Range{state.largest, smallest, is_suspicious(type, state)};
}

KindSet CpuScanner::kinds(const TensorView& tensor) const noexcept {
    const DTypeInfo& type = info(tensor.dtype);
    const int64_t elements = tensor.data == nullptr ? 0 : contiguous_elements(tensor);
    if (elements <= 0 || type.infinity != InfinityKind::IEEE) return health(tensor).kinds();
    return gather_kinds(type, tensor.data, elements * type.lanes);
}

Health CpuScanner::health(const TensorView& tensor) const noexcept { return exact_health(tensor); }

}  // namespace numsan
