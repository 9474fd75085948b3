// Ops on a device that take the host's time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "host/base/adapter_abi.h"
#include "host/base/tensor_bytes.h"
#include "host/ops/op_traits.h"

namespace numsan {

/// Set by hand: what a bus moves in about the time that the copy's call takes.
inline constexpr int64_t kSmallCopyBytes = 1 << 16;

/// Ops whose results are as large as values of a device say, which the host therefore waits for.
inline bool sizes_by_values(const OpEvent& event) {
    constexpr std::string_view kOps[] = {"nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive"};
    const std::string_view name = plain_op_name(event.op->name);
    if (std::find(std::begin(kOps), std::end(kOps), name) != std::end(kOps)) return true;
    return (name == "index" || name == "index_put") &&
           std::any_of(event.inputs + 1, event.inputs + std::max(event.input_count, 1),
                       [](const TensorView& input) { return input.integer == IntegerType::Bool; });
}

/// From the host's memory to a device's.
inline bool copies_a_little(const OpEvent& event) {
    if (event.input_count != 1 || event.output_count != 1 || traits_of(event).form != Form::Cast) return false;
    const TensorView& from = event.inputs[0];
    return from.device == Device::Cpu && (from.flags & kNumber) == 0 && event.outputs[0].device != Device::Cpu &&
           bytes_of(from) <= kSmallCopyBytes;
}

}  // namespace numsan
