#include "host/kernels/seen_launch.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

namespace numsan {
namespace {

constexpr uint64_t kNowhere = ~uint64_t(0);

/// Through the system, which has an error in place of a fault.
template <class T>
std::optional<T> read_if_there(const void* from) {
    T value{};
    const iovec to{&value, sizeof value}, remote{const_cast<void*>(from), sizeof value};
    return process_vm_readv(getpid(), &to, 1, &remote, 1, 0) == sizeof value ? std::optional(value) : std::nullopt;
}

/// What the launch was given for a parameter; none where there is no such argument, as with what is only declared.
template <class T>
std::optional<T> given(const SeenLaunch& launch, const KernelParameter& parameter) {
    if (parameter.declared) {
        const auto argument = read_if_there<const char*>(launch.arguments + parameter.argument);
        return argument ? read_if_there<T>(*argument + parameter.offset) : std::nullopt;
    }
    T value;
    std::memcpy(&value, static_cast<const char*>(launch.arguments[parameter.argument]) + parameter.offset,
                sizeof value);
    return value;
}

bool is_infinite(const SeenLaunch& launch, const KernelParameter& number) {
    if (number.dtype == DType::Float64) return std::isinf(given<double>(launch, number).value_or(0));
    return std::isinf(given<float>(launch, number).value_or(0));
}

}  // namespace

bool gives_infinity(const SeenLaunch& launch, const KernelSignature& signature) {
    return std::any_of(signature.parameters.begin(), signature.parameters.end(), [&](const KernelParameter& one) {
        return one.use == KernelParameter::Use::Number && is_infinite(launch, one);
    });
}

bool can_read_arguments() {
    const int known = 42;
    return read_if_there<int>(&known) == known;
}

std::vector<GivenBuffer> buffers_of(const SeenLaunch& launch, const KernelSignature& signature) {
    std::vector<GivenBuffer> buffers;
    for (const KernelParameter& parameter : signature.parameters) {
        if (!parameter.is_buffer()) continue;
        // Where there is no such argument it is one into memory that nobody has.
        const uint64_t address = given<uint64_t>(launch, parameter).value_or(kNowhere);
        if (address != 0) buffers.push_back({address, &parameter});
    }
    return buffers;
}

uint64_t end_of(const std::vector<GivenBuffer>& buffers, uint64_t address) {
    constexpr uint64_t kApart = 256;  // what is nearer is a place in the same buffer: a neighbour, a row
    uint64_t end = kNowhere;
    for (const GivenBuffer& other : buffers) {
        if (other.address > address && other.address - address >= kApart) end = std::min(end, other.address);
    }
    return end;
}

uint64_t end_of_count(uint64_t address, const KernelParameter& parameter) {
    const uint64_t bytes = info(parameter.dtype).element_bytes();
    return parameter.count > 0 ? address + static_cast<uint64_t>(parameter.count) * bytes : kNowhere;
}

}  // namespace numsan
