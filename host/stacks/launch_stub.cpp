#include "host/stacks/launch_stub.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

namespace numsan {
namespace {

/// Behind it are the kernel's mangled name, and what the stub takes.
constexpr std::string_view kStub = "__device_stub_";
/// Of a template there is this one besides.
constexpr std::string_view kWrapper = "__wrapper__device_stub_";

bool has_lines(const SourceFrame& stub) { return stub.file.ends_with(".cudafe1.stub.c"); }

bool is_launch_stub(const SourceFrame& frame) {
    return frame.native && (has_lines(frame) || frame.function.starts_with(std::string(kStub) + "_Z") ||
                            frame.function.find(kWrapper) != std::string::npos);
}

/// Whether `frame`, which called the stubs, of which `stub` is the innermost, is the kernel's function. Without debug
/// information that may have been inlined.
bool is_of_kernel(const SourceFrame& frame, const SourceFrame& stub) {
    if (has_lines(stub)) return true;
    if (!stub.function.starts_with(kStub)) return false;
    const std::string symbol = stub.function.substr(kStub.size(), stub.function.find('(') - kStub.size());
    char* const name = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, nullptr);
    const bool same = name != nullptr && frame.function == name;
    std::free(name);
    return same;
}

}  // namespace

void leave_out_launch_stub(std::vector<SourceFrame>& stack) {
    const auto first = std::find_if(stack.begin(), stack.end(), is_launch_stub);
    const auto kernel = std::find_if_not(first, stack.end(), is_launch_stub);
    if (first == stack.end() || kernel == stack.end()) return;
    const bool follows = is_of_kernel(*kernel, *first);
    if (follows && kernel + 1 == stack.end()) return;
    stack.erase(stack.begin(), follows ? kernel + 1 : kernel);
}

}  // namespace numsan
