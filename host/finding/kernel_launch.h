// One launch of a kernel that an operator ran on a device.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "host/base/ids.h"

namespace numsan {

struct KernelLaunch {
    std::string kernel;  ///< demangled
    std::string call;    ///< of the driver's: "cuLaunchKernelEx"
    std::array<uint32_t, 3> grid{};
    std::array<uint32_t, 3> block{};
    uint32_t shared_bytes = 0;    ///< dynamic, of a block
    uint64_t stream = 0;          ///< the driver's handle, 0 for the default stream
    uint32_t correlation_id = 0;  ///< CUPTI's number of the call
    uint64_t number = 0;          ///< among the launches of the process since they are watched, from 1
};

/// The last launches of a span, oldest first; empty where they are not known any more. [MT] May throw std::bad_alloc.
using LaunchesOf = std::vector<KernelLaunch> (*)(const LaunchSpan& span);

}  // namespace numsan
