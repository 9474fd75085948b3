// Judges events of a device in the program's order, once it is known what the device wrote.
#pragma once

#include "host/device/device_past.h"
#include "host/device/device_readings.h"
#include "host/device/device_side.h"
#include "host/device/graphs/graph_replays.h"
#include "host/event/event_parts.h"

namespace numsan {

/// One thread at a time, with DeviceSide::settling held. What it finds goes to DeviceSide::outcome.
class DeviceJudge {
  public:
    /// All outlive this.
    DeviceJudge(DeviceSide& side, DeviceReadings& readings, EventParts& parts)
        : side_(side),
          readings_(readings),
          parts_(parts),
          past_(side, readings, parts),
          replays_(side, readings, parts, past_) {}

    /// The oldest event, whose answers are collected.
    void judge(DeviceEvent& event);
    /// What replays of captured graphs have reported since.
    void judge_replays() { replays_.judge(); }

  private:
    void op(DeviceEvent& event);
    void node(DeviceEvent& event);
    void take_graph(const DeviceEvent& event);
    void take_host_readings(DeviceEvent& event, Range* ranges, OutputSet& bad);
    OutputSet take_answers(DeviceEvent& event, Range* ranges, OutputSet& bad);
    void leave_to_its_thread(const DeviceEvent& event, bool escapes);
    void take_operands(DeviceEvent& event);
    void take_copied(const DeviceEvent& event, Range* ranges, OutputSet& bad);
    void take_unread(DeviceEvent& event, OutputSet bad);
    void remember_results(const DeviceEvent& event);
    void alarm_by(const DeviceEvent& event, OutputSet bad);
    void look_behind_bad(const DeviceEvent& event);
    void count_unread_leaving(const DeviceEvent& event);

    DeviceSide& side_;
    DeviceReadings& readings_;
    EventParts& parts_;
    DevicePast past_;
    GraphReplays replays_;
};

}  // namespace numsan
