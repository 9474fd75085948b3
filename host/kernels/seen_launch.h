// A launch of a kernel, and the buffers that it is given.
#pragma once

#include <cstdint>
#include <cstring>

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

/// The pointer in an argument that a user describes. A kernel may have fewer arguments: where there is none it is one
/// into memory that nobody has. Of memory that is not there nothing is read.
/// Without can_read_arguments() it is always that.
uint64_t declared_pointer(const SeenLaunch& launch, const KernelParameter& parameter);

/// The system lets a process read its own memory without a fault. A sandbox may not.
bool can_read_arguments();

/// Calls take(address, parameter) for each buffer of numbers that the launch is given, and each of integers that it may
/// write.
template <class Take>
void each_buffer(const SeenLaunch& launch, const KernelSignature& signature, Take take) {
    using Use = KernelParameter::Use;
    for (const KernelParameter& parameter : signature.parameters) {
        const Use use = parameter.use;
        if (use != Use::Reads && use != Use::Writes && use != Use::Others) continue;
        uint64_t address;
        if (parameter.declared)
            address = declared_pointer(launch, parameter);
        else
            std::memcpy(&address, launch.arguments[parameter.argument], sizeof address);
        if (address != 0) take(address, parameter);
    }
}

/// Where the buffer ends that begins at `address`: another one of the launch begins there.
uint64_t end_of(const SeenLaunch& launch, const KernelSignature& signature, uint64_t address);
/// Where a buffer of as many numbers ends as are described; nowhere, if none are.
uint64_t end_of_count(uint64_t address, const KernelParameter& parameter);

}  // namespace numsan
