// The stream that the calling thread's ops on a device go to.
#pragma once

#include <c10/core/Device.h>

#include "host/base/device_queue.h"

namespace numsan {

/// Does nothing to the device. [MT] Throws nothing; `known` is false where this torch or this backend does not say.
DeviceQueue device_queue_of(c10::DeviceType type, c10::DeviceIndex index) noexcept;

}  // namespace numsan
