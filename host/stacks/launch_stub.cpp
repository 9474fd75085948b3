#include "host/stacks/launch_stub.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

namespace numsan {
namespace {

/// Behind it are the kernel's mangled name, as if it were no `extern "C"`, and what the stub takes.
constexpr std::string_view kStub = "__device_stub_";
constexpr std::string_view kMangledStub = "__device_stub__Z";
/// Of a template there is this one besides: behind it are the kernel's name alone, and the template's arguments.
constexpr std::string_view kWrapper = "__wrapper__device_stub_";

bool is_launch_stub(const SourceFrame& frame) {
    return frame.native && (frame.file.ends_with(".cudafe1.stub.c") || frame.function.starts_with(kMangledStub) ||
                            frame.function.find(kWrapper) != std::string::npos);
}

/// `grow` of `void deep::grow<float>(float*)`.
std::string_view own_name(std::string_view name) {
    constexpr std::string_view kUnnamed = "(anonymous namespace)";
    size_t first = 0;
    int depth = 0;
    for (size_t i = 0; i < name.size(); ++i) {
        if (depth == 0 && name.substr(i).starts_with(kUnnamed)) {
            i += kUnnamed.size() - 1;
            continue;
        }
        if (depth == 0 && name[i] == '(') break;
        if (name[i] == '<') ++depth;
        if (name[i] == '>') --depth;
        if (depth == 0 && (name[i] == ' ' || name[i] == ':')) first = i + 1;
    }
    return name.substr(first, name.find_first_of("<(", first) - first);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// `grow` of `_ZN4deep4growIfEvPT_`. Of a kernel that is given a lambda nvcc's name is not one that can be demangled.
std::string_view own_name_of_symbol(std::string_view symbol) {
    std::string_view name;
    for (size_t i = symbol.find_first_of("0123456789"); i < symbol.size() && is_digit(symbol[i]);) {
        size_t length = 0;
        for (; i < symbol.size() && is_digit(symbol[i]); ++i) length = 10 * length + (symbol[i] - '0');
        name = symbol.substr(i, length);
        i += name.size();
        if (!symbol.starts_with("_ZN")) break;  // what follows is its first parameter's type
        if (i < symbol.size() && symbol[i] == 'L') ++i;
    }
    return name;
}

/// Whether `function` is the kernel that `stub` launches. A function that was inlined has its own name alone, as has an
/// `extern "C"` one.
bool is_kernel_of(const std::string& function, const std::string& stub) {
    const std::string symbol = stub.substr(kStub.size(), stub.find('(') - kStub.size());
    char* const kernel = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, nullptr);
    const bool same = kernel != nullptr && function.find('(') != std::string::npos
                          ? function == kernel
                          : own_name(function) == own_name_of_symbol(symbol);
    std::free(kernel);
    return same;
}

/// Whether the frame that called the stubs, which begin with `first`, is the kernel's own function. That is not on the
/// stack where the compiler left it out: it does nothing but jump to the stub.
bool is_of_kernel(std::vector<SourceFrame>::const_iterator caller, std::vector<SourceFrame>::const_iterator first) {
    const auto stub =
        std::find_if(first, caller, [](const SourceFrame& one) { return one.function.starts_with(kStub); });
    if (stub != caller) return is_kernel_of(caller->function, stub->function);
    const std::string_view wrapper = own_name(first->function);
    return wrapper.starts_with(kWrapper) && wrapper.substr(kWrapper.size()) == own_name(caller->function);
}

}  // namespace

void leave_out_launch_stub(std::vector<SourceFrame>& stack) {
    const auto first = std::find_if(stack.begin(), stack.end(), is_launch_stub);
    const auto kernel = std::find_if_not(first, stack.end(), is_launch_stub);
    if (first == stack.end() || kernel == stack.end()) return;
    const bool follows = is_of_kernel(kernel, first);
    if (follows && kernel + 1 == stack.end()) return;
    stack.erase(stack.begin(), follows ? kernel + 1 : kernel);
}

std::string_view kernel_of_stub(std::string_view stub) {
    return stub.starts_with(kMangledStub) ? stub.substr(kStub.size()) : std::string_view();
}

bool may_be_kernel(std::string_view of_stub, std::string_view symbol) {
    return of_stub == symbol ||
           own_name_of_symbol(of_stub) == (symbol.starts_with("_Z") ? own_name_of_symbol(symbol) : symbol);
}

}  // namespace numsan
