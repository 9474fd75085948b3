// The operands of a device's event that are on the host: judged as they were when the event happened.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "host/device/device_log.h"
#include "host/device/device_readings.h"
#include "host/event/event_parts.h"

namespace numsan {

/// A number's memory is used again at once.
inline bool is_number_of_host(const TensorView& input) {
    return input.device == Device::Cpu && (input.flags & kNumber) != 0 && input.storage != nullptr;
}

inline const void* host_storage(const void* name) noexcept {
    return reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(name) & ~uintptr_t(1));
}

inline bool is_renamed(const TensorView& input) {
    return input.device == Device::Cpu && host_storage(input.storage) != input.storage;
}

/// While the event waits for the device, the program goes on: it writes these operands again, or frees them and uses
/// their addresses for others. So they go by names of their own while it is judged.
class HostOperands {
  public:
    /// Both outlive it.
    HostOperands(DeviceEvent& event, EventParts& parts) : event_(event), parts_(parts) {}

    /// While the event happens: what is known of them. May throw std::bad_alloc.
    void keep();
    /// Before the event is judged.
    void rename();
    /// After that: what was found in an operand is noted of its storage if that still holds it. No name is left.
    void hand_back();

  private:
    /// No op after the event has written the storage. What is forgotten of it counts as written.
    bool holds_the_same(const HostOperand& then, const void* storage) const {
        const OpSeq written = parts_.lineage.written_at(storage);
        return written < event_.context.seq && (written != OpSeq::None || then.memory.seq == OpSeq::None);
    }
    void catch_up(HostOperand& then, const TensorView& input) const;

    DeviceEvent& event_;
    EventParts& parts_;
};

inline void HostOperands::keep() {
    HostOperand* next = event_.operands;
    for (int32_t i = 0; i < event_.op.input_count; ++i) {
        const TensorView& input = event_.inputs[i];
        if (!is_of_then(event_.op, input)) continue;
        *next++ = {parts_.verdict.contents_of(input), parts_.lineage.memory_of(input.storage)};
    }
}

/// Events before this one were judged since: a copy that was under way has written the operand, or another one has
/// found what is in it.
inline void HostOperands::catch_up(HostOperand& then, const TensorView& input) const {
    if (!holds_the_same(then, input.storage)) return;
    const Lineage::Memory now = parts_.lineage.memory_of(input.storage);
    const Ledger::Contents contents = parts_.verdict.contents_of(input);
    if (now.known.last != then.memory.known.last)
        then = {contents, now};
    else if (then.contents.births.empty())
        then.contents.births = contents.births;
}

inline void HostOperands::rename() {
    HostOperand* next = event_.operands;
    for (int32_t i = 0; i < event_.op.input_count; ++i) {
        TensorView& input = event_.inputs[i];
        if (is_number_of_host(input)) {
            input.storage = device_storage(input.storage);
            parts_.verdict.adopt(input, {});
            continue;
        }
        if (!is_of_then(event_.op, input)) continue;
        HostOperand& then = *next++;
        catch_up(then, input);
        input.storage = device_storage(input.storage);
        parts_.lineage.adopt(input.storage, then.memory);
        parts_.verdict.adopt(input, then.contents);
    }
}

inline void HostOperands::hand_back() {
    const HostOperand* next = event_.operands;
    for (int32_t i = 0; i < event_.op.input_count; ++i) {
        TensorView& input = event_.inputs[i];
        if (!is_renamed(input)) continue;
        const Ledger::Entry found = parts_.verdict.contents_of(input).births;
        parts_.verdict.adopt(input, {});
        parts_.lineage.forget(input.storage);
        input.storage = host_storage(input.storage);
        if ((input.flags & kNumber) != 0) continue;
        const HostOperand& then = *next++;
        const Ledger::Entry& known = then.contents.births;
        const bool more = !std::equal(std::begin(found.birth), std::end(found.birth), std::begin(known.birth));
        if (more && !found.empty() && holds_the_same(then, input.storage)) parts_.verdict.holds(input, found);
    }
}

}  // namespace numsan
