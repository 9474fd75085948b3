// The frames of a launch kernel<<<...>>>(...) that nvcc's code adds to a stack.
#pragma once

#include <vector>

#include "host/stacks/stack_source.h"

namespace numsan {

/// nvcc makes of each kernel a function of the host, whose line is the kernel's, and stubs that it calls. Without these
/// the stack, innermost frame first, begins with the line that launches.
void leave_out_launch_stub(std::vector<SourceFrame>& stack);

}  // namespace numsan
