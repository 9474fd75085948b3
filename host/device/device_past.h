// The look back on a device, once it has answered: what led to a bad value that nothing explains.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "host/base/ids.h"
#include "host/device/device_readings.h"
#include "host/device/device_side.h"
#include "host/event/event_parts.h"

namespace numsan {

/// Called while events are settled: one thread at a time.
class DevicePast {
  public:
    /// All outlive this.
    DevicePast(DeviceSide& side, DeviceReadings& readings, EventParts& parts)
        : side_(side), readings_(readings), parts_(parts) {}

    /// A watched operand of the event is bad: the results of its look back go to the verdict.
    void look_back(const DeviceEvent& event);
    /// A tensor of the event (a gradient that reaches a leaf, an operand of a bad result) is bad, and no op is known to
    /// have made it so: the last one that wrote it is shown to the verdict. What that one read is unavailable.
    void look_behind(const DeviceEvent& event, const TensorView& tensor, const Range& range, const DeviceHit* hit);
    /// Whether births are known of all kinds that were found in a device's tensor. Without `hit` it may hold any.
    bool is_explained(TensorView tensor, const DeviceHit* hit);

  private:
    using LastWrites = std::map<const void*, OpSeq>;  ///< by storage: the number of the op

    void look_behind_watched(const DeviceEvent& event);
    OpSeq last_write(const LastWrites& writes, const void* storage) const;
    void take_results(const DeviceEvent& event, uint64_t number, LoggedOp& op, const LastWrites& writes, size_t& next);
    void mark_operands(LoggedOp& op, uint8_t there, const std::set<const void*>& answered, const LastWrites& writes);

    DeviceSide& side_;
    DeviceReadings& readings_;
    EventParts& parts_;
};

}  // namespace numsan
