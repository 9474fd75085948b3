// A launch of a kernel, and the buffers that it is given.
#pragma once

#include <cstdint>
#include <vector>

#include "host/base/adapter_abi.h"
#include "host/kernels/kernel_signature.h"

namespace numsan {

/// A launch, as the driver was asked for it. Valid during the call.
struct SeenLaunch {
    const char* symbol;      ///< the kernel's mangled name; null: it has none
    void* const* arguments;  ///< where each argument lies; null: they were handed over in another way
    DeviceQueue queue;
    bool captured = false;     ///< into a graph: it does not run now
    LaunchSpan launches = {};  ///< what it is in the log of launches, once it was made
};

/// One of the numbers that it is given by value is infinite: it masks or begins a minimum with it.
bool gives_infinity(const SeenLaunch& launch, const KernelSignature& signature);

/// The system lets a process read its own memory without a fault. Arguments need that which a user describes, or debug
/// information of a kernel with a C name: it may have fewer. A sandbox may not; then those kernels are not known.
bool can_read_arguments();

/// A buffer that a launch is given.
struct GivenBuffer {
    uint64_t address;
    const KernelParameter* parameter;  ///< of the signature
};

/// Each buffer of numbers, and each of integers that the kernel may write. Throws std::bad_alloc.
std::vector<GivenBuffer> buffers_of(const SeenLaunch& launch, const KernelSignature& signature);

/// Where the buffer ends that begins at `address`: another one of the launch begins there.
uint64_t end_of(const std::vector<GivenBuffer>& buffers, uint64_t address);
/// Where a buffer of as many numbers ends as are described; nowhere, if none are.
uint64_t end_of_count(uint64_t address, const KernelParameter& parameter);

}  // namespace numsan
