// Where the functions that were called will return to: a stack, as addresses.
#pragma once

#include <cstdint>

namespace numsan {

/// Of one thread's stack, innermost first.
struct ReturnAddresses {
    static constexpr int kMost = 48;
    uintptr_t address[kMost];
    int count = 0;
};

/// [MT] Those of the calling function, which the compiler must not inline, and of those outside it. Unwinds by the
/// tables every binary carries (.eh_frame).
[[gnu::noinline]] void read_return_addresses(ReturnAddresses& into) noexcept;

}  // namespace numsan
