// Starts the session in this process: options, stacks, adapter, exit and fork handlers.
#pragma once

#include "host/options/options.h"
#include "interpose/runtime/stub_abi.h"

namespace numsan {

/// Called once, when torch has just been loaded. False when nothing will be watched; the reason has been said.
bool attach(const numsan_stub_api& stub);

/// NUMSAN_OPTIONS as they were when first asked for; what is wrong with them is said then. [MT]
const Options& process_options();

/// One line "numsan: LINE" on stderr. [MT]
void say(const char* line);

}  // namespace numsan
