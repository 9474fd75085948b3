#include "host/stacks/launch_stub.h"

#include <algorithm>

namespace numsan {

void leave_out_launch_stub(std::vector<SourceFrame>& stack) {
    const auto is_stub = [](const SourceFrame& frame) {
        return frame.native && frame.file.ends_with(".cudafe1.stub.c");
    };
    const auto first = std::find_if(stack.begin(), stack.end(), is_stub);
    const auto kernel = std::find_if_not(first, stack.end(), is_stub);
    if (first != stack.end() && kernel != stack.end()) stack.erase(stack.begin(), kernel + 1);
}

}  // namespace numsan
