#include "host/ops/operands.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "host/base/tensor_bytes.h"
#include "host/ops/collectives.h"
#include "host/ops/op_traits.h"

namespace numsan {

bool only_views(const OpEvent& event) noexcept {
    return event.output_count > 0 && std::all_of(event.outputs, event.outputs + event.output_count,
                                                 [&](const TensorView& output) { return is_view(event, output); });
}

bool computes_nothing(const OpEvent& event) noexcept {
    return only_views(event) || event.op->op_class == OpClass::Allocation;
}

/// Of two tensors without gaps.
static bool overlap(const TensorView& a, const TensorView& b) {
    const auto* a_begin = static_cast<const char*>(a.data);
    const auto* b_begin = static_cast<const char*>(b.data);
    return a_begin < b_begin + bytes_of(b) && b_begin < a_begin + bytes_of(a);
}

bool written_by(const OpEvent& event, const TensorView& input) {
    // A rank's own part of the buffer that a collective fills is handed on as it is. A kernel of a program's own may
    // have several buffers in one allocation, and a library's call parts of one matrix, which it may not mix.
    const std::string_view op = event.op->name;
    const bool whole = event.op->op_class != OpClass::Collective && !is_library_call(op);
    return std::any_of(event.outputs, event.outputs + event.output_count, [&](const TensorView& output) {
        return (output.flags & kWritten) != 0 && output.storage == input.storage &&
               (output.impl == input.impl || (whole && (!is_kernel(op) || overlap(output, input))));
    });
}

WrittenOperands::WrittenOperands(const OpEvent& event) : event_(event) {
    constexpr int32_t kFew = 16;
    if (event.output_count <= kFew || event.op->op_class == OpClass::Collective) return;
    written_.resize(std::bit_ceil(2 * static_cast<size_t>(event.output_count)));
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if ((output.flags & kWritten) != 0) written_[place_of(output.storage)] = output.storage;
    }
}

/// Where it is or would be.
size_t WrittenOperands::place_of(const void* storage) const {
    constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
    size_t at = reinterpret_cast<uintptr_t>(storage) * kGolden >> 32;
    while (written_[at & (written_.size() - 1)] != nullptr && written_[at & (written_.size() - 1)] != storage) ++at;
    return at & (written_.size() - 1);
}

bool WrittenOperands::contain(const TensorView& input) const {
    return written_.empty() ? written_by(event_, input) : written_[place_of(input.storage)] == input.storage;
}

bool sends(const OpEvent& event, const TensorView& input) {
    if (!written_by(event, input)) return true;
    const auto in_place = [&](const TensorView& other) { return written_by(event, other); };
    if (!std::all_of(event.inputs, event.inputs + event.input_count, in_place)) return false;
    // One rank sends and all others receive, into what may be unwritten memory; what is sent may be some, too: buffers
    // that a model fills later are broadcast before.
    const CollectiveWay way = route_of(event).way;
    return way != CollectiveWay::OneToAll && way != CollectiveWay::Receive;
}

bool adopts_storage(const OpEvent& event) {
    return event.output_count > 0 && std::strcmp(event.op->name, "aten::set_") == 0;
}

}  // namespace numsan
