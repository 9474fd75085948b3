// Which scanner a session gets for tensors of a device.
#pragma once

#include <string>

#include "host/core/adapter_abi.h"
#include "host/core/device_scanner.h"

namespace numsan {

/// For the device of `first`, the first event with such a tensor. Null, and in `why` the reason in a user's words, when
/// it cannot be scanned. The scanner lives as long as the process. May throw std::bad_alloc.
DeviceScanner* make_device_scanner(const OpEvent& first, std::string& why);

}  // namespace numsan
