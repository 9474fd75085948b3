// What replays of CUDA graphs report: bad outputs of ops that were captured, each time the graph makes them.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

#include "host/device/device_past.h"
#include "host/device/device_readings.h"
#include "host/device/device_side.h"
#include "host/event/event_parts.h"

namespace numsan {

/// One thread at a time, with DeviceSide::settling held. What it finds goes to DeviceSide::outcome.
class GraphReplays {
  public:
    /// All outlive this.
    GraphReplays(DeviceSide& side, DeviceReadings& readings, EventParts& parts, DevicePast& past)
        : side_(side), readings_(readings), parts_(parts), past_(past) {}

    /// An event that was captured; in their order. Owned from here on, until its graph is gone. May throw.
    void add(const DeviceEvent& event);
    /// What was reported since. May throw.
    void judge();

  private:
    /// One bad tensor.
    struct Reported {
        const DeviceEvent* event;
        int32_t output, input;  ///< its place, the other one is -1
        DeviceHit hit;
    };
    std::vector<Reported> take_reported();
    void note_streaks(const std::vector<Reported>& all);
    bool is_of_before(const DeviceEvent& event, const TensorView& tensor, uint64_t replay) const;
    bool stays_bad(const DeviceEvent& event, int32_t output, const DeviceHit& hit);
    const DeviceEvent* at(ScanTicket sequence) const;
    void forget(const std::vector<ScanTicket>& ended);
    void explain(const DeviceEvent& event, const TensorView& tensor, const Health& health, uint64_t replay);
    void operand_is_bad(const DeviceEvent& event, int32_t output, const DeviceHit& hit);
    const DeviceEvent* writer_of(const DeviceEvent& event, const TensorView& tensor, int32_t& output) const;
    OpContext context_of(const DeviceEvent& event) const;
    void take_bad(TensorView& tensor, const Health& health);
    void judge(const DeviceEvent& event, const OpContext& context, OutputSet bad);
    void output_is_bad(const DeviceEvent& event, int32_t output, const DeviceHit& hit);
    void value_leaves(const DeviceEvent& event, int32_t input, const DeviceHit& hit);
    void gradient_is_bad(const DeviceEvent& event, int32_t place, const DeviceHit& hit);

    DeviceSide& side_;
    DeviceReadings& readings_;
    EventParts& parts_;
    DevicePast& past_;
    std::vector<const DeviceEvent*> captured_;  ///< in their order; those that are not scanned have no number
    std::set<uint64_t> governed_;               ///< captures in which scans take turns
    /// By storage: the replay that left a bad value there last.
    struct Left {
        uint64_t capture, replay;
    };
    std::unordered_map<const void*, Left> left_;
    /// Of a graph's replays (the upper half of their numbers) those one after the other in which something was bad that
    /// is looked at each time: what was found in the first of them explains the others.
    struct Streak {
        uint64_t first, last;
    };
    std::unordered_map<uint64_t, Streak> streaks_;
    int64_t lost_ = 0;  ///< reports that found no room or no time, as of the last that came
};

}  // namespace numsan
