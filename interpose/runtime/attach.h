// Starts the session in this process: options, stacks, adapter, exit and fork handlers.
#pragma once

#include "interpose/runtime/stub_abi.h"

namespace numsan {

/// Called once, when torch has just been loaded. False when nothing will be watched; the reason has been said.
bool attach(const numsan_stub_api& stub);

/// "prebuilt|", "cached|" or "compiled|" and the adapter's path; empty before one is attached. Lives for ever. [MT]
const char* adapter_origin() noexcept;

}  // namespace numsan
