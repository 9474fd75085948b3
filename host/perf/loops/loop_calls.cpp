#include "host/perf/loops/loop_calls.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "host/base/tensor_bytes.h"
#include "host/ops/op_traits.h"
#include "host/ops/operands.h"
#include "host/perf/value_samples.h"

namespace numsan {
namespace {

/// Lists of numbers among the arguments of a call are not shown, and sizes do not tell what these say.
bool is_told_by_lists(const OpEvent& event) noexcept {
    const std::string_view name = plain_op_name(event.op->name);
    return name == "roll" || name == "flip" || name == "rot90" || name.find("_pad") != std::string_view::npos;
}

/// Another op of the same kind may do for all slices what it does for one. Random numbers may come from a generator
/// of the slice's own, and how much an index of booleans takes is known from its values only.
bool may_take_all(const OpEvent& event) noexcept {
    const OpTraits& traits = traits_of(event);
    const bool masks = traits.form == Form::Move && event.input_count > 1 &&
                       std::any_of(event.inputs + 1, event.inputs + event.input_count,
                                   [](const TensorView& input) { return input.integer == IntegerType::Bool; });
    return !traits.names.empty() && !is_told_by_lists(event) && !traits.has(kRandom) &&
           traits.form != Form::BatchNorm && !masks && event.op->op_class != OpClass::HostRead &&
           event.op->op_class != OpClass::Collective && !wraps_memory(event) && !is_over_lists(event);
}

/// False: the op writes more than one.
bool find_slice(const OpEvent& event, LoopSlice& slice) noexcept {
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if ((output.flags & kWritten) == 0 || !is_slice(output)) continue;
        if (slice.storage != nullptr) return false;
        const int64_t bytes = element_bytes(output);
        slice = {output.storage, static_cast<const char*>(output.data), sizes_of(output), 0, bytes, 0};
        for (int16_t k = 0; k < output.ndim; ++k) {
            if (output.sizes[k] < 2) continue;
            const std::ptrdiff_t stride = std::abs(output.strides[k]) * bytes;
            slice.extent += (output.sizes[k] - 1) * stride;
            slice.stride = slice.stride == 0 ? stride : std::min(slice.stride, stride);
        }
    }
    return true;
}

}  // namespace

bool is_slice(const TensorView& tensor) noexcept {
    return (tensor.flags & kNumber) == 0 && tensor.storage != nullptr && tensor.numel > 0 && !covers_storage(tensor);
}

uint64_t sizes_of(const TensorView& tensor) noexcept {
    uint64_t hash = 1;
    for (int16_t i = 0; i < tensor.ndim; ++i)
        hash = mixed(mixed(hash, static_cast<uint64_t>(tensor.sizes[i])), static_cast<uint64_t>(tensor.strides[i]));
    return hash;
}

uint64_t values_at(const TensorView& tensor, const char* data) noexcept {
    constexpr int64_t kSampled = 64;
    if (tensor.storage_data == nullptr || tensor.device != Device::Cpu) return 0;
    const int64_t bytes = element_bytes(tensor);
    const int64_t start = data - static_cast<const char*>(tensor.storage_data);
    const int64_t taken = std::min(tensor.numel, kSampled);
    uint64_t hash = 1;
    for (int64_t i = 0; i < taken; ++i) {
        int64_t index = i * tensor.numel / taken;
        int64_t place = start;
        for (int16_t k = tensor.ndim; k-- > 0; index /= tensor.sizes[k])
            place += index % tensor.sizes[k] * tensor.strides[k] * bytes;
        if (place < 0 || place + bytes > tensor.storage_bytes) return 0;
        uint64_t word = 0;
        std::memcpy(&word, static_cast<const char*>(tensor.storage_data) + place,
                    static_cast<size_t>(std::min<int64_t>(8, bytes)));
        hash = mixed(hash, word);
    }
    return hash | 1;
}

bool writes_to(const OpEvent& event, const TensorView& operand) noexcept {
    return std::any_of(event.outputs, event.outputs + event.output_count, [&](const TensorView& output) {
        return (output.flags & kWritten) != 0 && output.data == operand.data;
    });
}

bool overwrites(const OpEvent& event, const TensorView& operand) noexcept {
    return event.op->op_class == OpClass::Overwriting && writes_to(event, operand);
}

bool loop_call(const OpEvent& event, OpSeq seq, const Lineage& lineage, LoopCall& call) noexcept {
    if (!may_take_all(event)) return false;
    call.op = event.op;
    call.seq = number(seq);
    call.shape = 1;
    for (int32_t i = 0; i < event.scalar_count; ++i)
        call.shape = mixed(call.shape, std::bit_cast<uint64_t>(event.scalars[i]));
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if ((input.flags & kNumber) != 0) {
            call.shape = mixed(call.shape, value_of_number(input));
            continue;
        }
        if (call.operand_count == LoopCall::kOperands || input.storage == nullptr) return false;
        LoopOperand& operand = call.operands[call.operand_count++];
        operand.storage = input.storage;
        operand.memory = input.storage_data;
        operand.data = static_cast<const char*>(input.data);
        operand.sizes = sizes_of(input);
        operand.written = number(lineage.written_at(input.storage));
        operand.is_read = !overwrites(event, input);
        operand.input = i;
        call.shape = mixed(call.shape, operand.sizes);
    }
    // Others than matrices of numbers are not shown: a sparse one may be another in each round.
    const OpTraits& traits = traits_of(event);
    const size_t factors = traits.form == Form::AddMatrixProduct ? 3 : 2;
    if (is_matrix_product(traits) && call.operand_count < factors) return false;
    for (int32_t i = 0; i < event.output_count; ++i) {
        call.shape = mixed(call.shape, sizes_of(event.outputs[i]));
        call.shape = mixed(call.shape, static_cast<uint64_t>(event.outputs[i].dtype));
    }
    call.adds_up = traits.form == Form::Add &&
                   std::all_of(event.scalars, event.scalars + event.scalar_count, [](double one) { return one == 1; });
    for (int32_t i = 0; i < std::min<int32_t>(event.output_count, LoopCall::kOperands); ++i)
        call.memory[static_cast<size_t>(i)] = event.outputs[i].storage_data;
    return find_slice(event, call.slice);
}

}  // namespace numsan
