// Where a device takes work from. Plain data across the C boundary to the adapter.
#pragma once

#include <cstdint>

namespace numsan {

/// The native handle of a stream (null: the default one) and torch's number of the device.
struct DeviceQueue {
    void* stream;
    int16_t device;
    bool known;  ///< false: torch could not be asked
};

}  // namespace numsan
