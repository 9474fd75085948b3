// Starts the session in this process: options, stacks, adapter, exit and fork handlers.
#pragma once

#include <string>

#include "interpose/runtime/stub_abi.h"

namespace numsan {

/// Called once, when torch has just been loaded. False when nothing will be watched; the reason has been said.
bool attach(const numsan_stub_api& stub);

/// "prebuilt|", "cached|" or "compiled|" and the adapter's path; empty before one is attached. Lives for ever. [MT]
const char* adapter_origin() noexcept;

/// What a program says and asks through python/numsan; nothing happens before a session is there. [MT]
struct Front {
    /// A scope of this name begins or ends on the calling thread, as record_function's do.
    static void scope(const char* name, bool begins) noexcept;
    /// What waits for what the program does next is decided now, as at its end.
    static void decide() noexcept;
    /// The report as it would be written now; false without a session. May throw std::bad_alloc.
    static bool report(std::string& text);
};

}  // namespace numsan
