// The frames of a launch kernel<<<...>>>(...) that nvcc's code adds to a stack.
#pragma once

#include <vector>

#include "host/stacks/stack_source.h"

namespace numsan {

/// nvcc makes each kernel a function for the host, whose line is that of the kernel, and stubs that it calls. The stack,
/// innermost frame first, then begins with the line that launches. One without debug information stays as it is.
void leave_out_launch_stub(std::vector<SourceFrame>& stack);

}  // namespace numsan
