// Takes events that touch a device's memory: recorded in the program's order, and handed to the scanner at once.
#pragma once

#include <cstdint>
#include <memory>

#include "host/base/scanner.h"
#include "host/device/device_look_back.h"
#include "host/device/device_settler.h"
#include "host/device/device_side.h"
#include "host/event/event_parts.h"
#include "host/event/thread_state.h"

namespace numsan {

/// [MT] On the program's threads. All may throw std::bad_alloc but those that are noexcept.
class DeviceIntake {
  public:
    /// `host` reads host memory. All outlive this.
    DeviceIntake(DeviceSide& side, const Scanner& host, EventParts& parts, DeviceSettler& settler)
        : side_(side), host_(host), parts_(parts), settler_(settler) {}

    /// With `waits` the number of the op if it can be waited for, see DeviceSettler::await; else OpSeq::None.
    OpSeq op(ThreadState& thread, const OpEvent& event, bool waits);
    void node(const NodeEvent& event, const OpContext& context);
    /// False: nothing waits for the device, so that what is marked can be done at once.
    bool mark(DeviceEvent::Kind kind) noexcept;

  private:
    struct Reads {
        OutputSet outputs;
        uint64_t watch;         ///< bit i: operand i is read, as its value goes elsewhere
        uint32_t handed;        ///< outputs that the scanner is handed
        uint32_t watched;       ///< operands
        uint64_t capture;       ///< of the graph that the op goes into; 0: it runs, or none has been seen yet
        Governor::Spent spent;  ///< what the outputs are read for
    };
    Reads reads_of(const OpEvent& event, const OpContext& context);
    bool is_loss_of_graph(const OpEvent& event, const OpContext& context) const;
    void count_unwatched(const OpEvent& event) noexcept;
    std::unique_ptr<LookBackScans> ask_back(ThreadState& thread, const OpEvent& event);
    std::unique_ptr<LookBackScans> ask_graph_back(ThreadState& thread, const OpEvent& event, uint64_t capture);
    void log_captured(const OpEvent& event, const DeviceEvent& kept, const ForwardMap::Made& made);
    void keep_for_replays(DeviceEvent& event, uint64_t capture);
    void leave_unread(const OpEvent& event, const OpContext& context, const ForwardMap::Made& made, OutputSet read);
    void hand_over(DeviceEvent& event, LookBackScans* past, Governor::Spent spent_on_outputs);
    void commit(DeviceEvent& event) noexcept;

    DeviceSide& side_;
    const Scanner& host_;
    EventParts& parts_;
    DeviceSettler& settler_;
};

}  // namespace numsan
