// The frames of a launch kernel<<<...>>>(...) that nvcc's code adds to a stack.
#pragma once

#include <string_view>
#include <vector>

#include "host/stacks/stack_source.h"

namespace numsan {

/// nvcc makes of each kernel a function of the host, whose line is the kernel's, and stubs that it calls. Without these
/// the stack, innermost frame first, begins with the line that launches.
void leave_out_launch_stub(std::vector<SourceFrame>& stack);

/// `_Z5scalePfi` of `__device_stub__Z5scalePfi`: the kernel of such a stub, by its own name. Empty: it is none.
std::string_view kernel_of_stub(std::string_view stub);

/// Whether the driver may have that kernel under `symbol`: an `extern "C"` one has no mangled name there, and one that
/// is given a lambda has another. Overloads are not told apart.
bool may_be_kernel(std::string_view of_stub, std::string_view symbol);

}  // namespace numsan
