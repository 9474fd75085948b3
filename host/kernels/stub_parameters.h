// What debug information says of a kernel's parameters. nvcc makes of each kernel a function of the host, a stub with
// the same parameters, which launches it: structs have their members there, and a kernel without a mangled name types.
#pragma once

#include <optional>
#include <vector>

#include "host/kernels/kernel_signature.h"

namespace numsan {

struct StubParameters {
    int count = 0;                       ///< of arguments
    std::vector<KernelParameter> parts;  ///< of those: members of structs one by one, by their offsets
};

/// [MT] Of the kernel that is called `symbol` in the driver and that the calling thread is launching: its stub is on
/// the stack, or, of one with a mangled name, among the symbols of a binary. None where no stub is found that was
/// compiled with -g, or without libdw. Reads files. Throws std::bad_alloc.
std::optional<StubParameters> stub_parameters(const char* symbol);

}  // namespace numsan
