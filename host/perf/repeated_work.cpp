#include "host/perf/repeated_work.h"

#include <algorithm>

#include "host/ops/op_traits.h"

namespace numsan {

bool RepeatedWork::may_repeat(const OpEvent& event) noexcept {
    const OpClass op_class = event.op->op_class;
    const bool computes = op_class == OpClass::Other || op_class == OpClass::Constant ||
                          op_class == OpClass::Preserving || op_class == OpClass::Overwriting;
    if (!computes || event.on_device || event.output_count != 1 || wraps_memory(event)) return false;
    const TensorView& output = event.outputs[0];
    if ((output.flags & kRequiresGrad) != 0 || output.device != Device::Cpu || is_view(event, output)) return false;
    return std::none_of(event.inputs, event.inputs + event.input_count, [](const TensorView& input) {
        return (input.flags & kRequiresGrad) != 0 || input.device != Device::Cpu;
    });
}

uint64_t RepeatedWork::key_of(const TensorView& input, OpSeq first, const Lineage& lineage) const noexcept {
    uint64_t key = mixed(mixed(2, static_cast<uint64_t>(input.numel)), static_cast<uint64_t>(input.dtype));
    if ((input.flags & kNumber) != 0) return mixed(key, value_of_number(input)) | 1;
    const auto offset =
        static_cast<uint64_t>(static_cast<const char*>(input.data) - static_cast<const char*>(input.storage_data));
    if (const Made* known = made(input.storage, lineage)) return mixed(mixed(key, known->key), offset) | 1;
    const OpSeq written = lineage.written_at(input.storage);
    if (written >= first) return 0;
    key = mixed(mixed(key, reinterpret_cast<uintptr_t>(input.storage)), offset);
    return mixed(key, static_cast<uint64_t>(number(written))) | 1;
}

RepeatedWork::Slot& RepeatedWork::slot_of(uint64_t key) noexcept {
    Slot* const row = slots_.data() + (key >> 20) % (kSlots / kRow) * kRow;
    Slot* const known = std::find_if(row, row + kRow, [&](const Slot& slot) { return slot.key == key; });
    if (known != row + kRow) return *known;
    return *std::min_element(row, row + kRow, [](const Slot& a, const Slot& b) { return a.step < b.step; });
}

RepeatedWork::Seen RepeatedWork::after(const OpEvent& event, int64_t step, const Lineage& lineage) noexcept {
    Seen seen;
    uint64_t sample = 0;
    if (key_ == 0 || !sample_values(event.outputs[0], kSampled, sample)) return seen;
    Slot& slot = slot_of(key_);
    if (slot.key != key_) {
        slot = {key_, sample, step, false};
    } else {
        slot.varies = slot.varies || slot.sample != sample;
        const bool again = slot.step + 1 >= step && !slot.varies;
        slot.step = step;
        // What is only filled costs as much to be kept and copied.
        if (again && !traits_of(event).has(kConstant)) seen.what = Seen::What::Repeated;
    }
    const void* storage = event.outputs[0].storage;
    if (!slot.varies) made_[storage] = {storage, lineage.written_at(storage), key_, stack_};
    return seen;
}

}  // namespace numsan
