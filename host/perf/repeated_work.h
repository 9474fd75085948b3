// Ops that compute in each step what they computed in the step before.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/base/ids.h"
#include "host/perf/storage_slots.h"
#include "host/perf/value_samples.h"
#include "host/stacks/stack_source.h"
#include "host/track/lineage.h"

namespace numsan {

/// Of one thread. An op repeats itself where it is called from the same stack, on operands that no op has written since
/// the step before or that repeat themselves, with the same numbers, and its result has the same values. What numpy
/// writes to shared memory no op is seen to write: the values of results are compared, up to 256 words of each, evenly
/// spread. Constant memory.
class RepeatedWork {
  public:
    /// What became of an op.
    struct Seen {
        enum class What : uint8_t { Nothing, Repeated, TakenBack } what = What::Nothing;
        StackId stack = 0;  ///< TakenBack: of the op whose result this one has written to
    };

    /// An op before the lineage knows of it. `first`: number of the first op of this step; `stack` is asked for at most
    /// once. Ops of autograd and of optimizers are not shown.
    template <class Capture>
    Seen before(const OpEvent& event, OpSeq first, const Lineage& lineage, Capture&& stack) noexcept;

    /// The same op, once the lineage knows of it. `step`: number of steps that were looked at before this one.
    Seen after(const OpEvent& event, int64_t step, const Lineage& lineage) noexcept;

    StackId stack() const noexcept { return stack_; }

  private:
    /// An op of the past by what it was called with.
    struct Slot {
        uint64_t key = 0;
        uint64_t sample = 0;
        int64_t step = -1;
        bool varies = false;  ///< the same operands gave another result: it is random
    };
    /// A result that may be the same in each step.
    struct Made {
        const void* storage = nullptr;
        OpSeq written = OpSeq::None;
        uint64_t key = 0;
        StackId stack = 0;
    };

    static constexpr size_t kSlots = 512;
    static constexpr size_t kRow = 8;         ///< slots that an op may have
    static constexpr int64_t kSampled = 256;  ///< words of a result

    const Made* made(const void* storage, const Lineage& lineage) const noexcept {
        const Made& found = made_[storage];
        const bool holds =
            found.storage == storage && found.written != OpSeq::None && found.written == lineage.written_at(storage);
        return holds ? &found : nullptr;
    }
    /// Of an operand; 0: it was written in this step, by an op that does not repeat itself.
    uint64_t key_of(const TensorView& input, OpSeq first, const Lineage& lineage) const noexcept;
    /// The op's, or that of its row which was not seen for longest.
    Slot& slot_of(uint64_t key) noexcept;
    static bool may_repeat(const OpEvent& event) noexcept;

    uint64_t key_ = 0;  ///< of the op between before() and after(); 0: it cannot repeat itself
    StackId stack_ = 0;
    std::array<Slot, kSlots> slots_{};
    StorageSlots<Made, 256> made_;
};

template <class Capture>
RepeatedWork::Seen RepeatedWork::before(const OpEvent& event, OpSeq first, const Lineage& lineage,
                                        Capture&& stack) noexcept {
    key_ = 0;
    Seen seen;
    uint64_t key = may_repeat(event) ? mixed(1, reinterpret_cast<uintptr_t>(event.op)) : 0;
    for (int32_t i = 0; i < event.input_count && key != 0; ++i) {
        const uint64_t operand = key_of(event.inputs[i], first, lineage);
        key = operand == 0 ? 0 : mixed(key, operand);
    }
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        const Made* written = (output.flags & kWritten) != 0 ? made(output.storage, lineage) : nullptr;
        if ((output.flags & kWritten) != 0 && written == nullptr) key = 0;  // state of the program's
        if (written != nullptr && key == 0) seen = {Seen::What::TakenBack, written->stack};
    }
    if (key == 0) return seen;
    for (int32_t i = 0; i < event.scalar_count; ++i) key = mixed(key, std::bit_cast<uint64_t>(event.scalars[i]));
    for (int16_t i = 0; i < event.outputs[0].ndim; ++i)
        key = mixed(key, static_cast<uint64_t>(event.outputs[0].sizes[i]));
    stack_ = stack();
    key_ = mixed(key, stack_) | 1;
    return seen;
}

}  // namespace numsan
