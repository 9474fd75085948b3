// Carries out what BreakPoints decides: after an operator, on its thread, with the interpreter's lock.
#pragma once

#include <string>

#include "host/base/adapter_abi.h"
#include "host/session/session.h"
#include "host/stacks/stack_source.h"
#include "interpose/python/api/api.h"

namespace numsan {

/// With the option `break`: has the adapter call it. Before the core's table is handed to anybody.
void announce_break_stops(CoreApi& core) noexcept;

/// Starts it, before the first event. `stacks` are the process's own, also where they are recorded; `libraries` is the
/// folder of the core, which has replay/. False where the interpreter would not have it. Everything lives as long as
/// the process.
bool start_break_stops(const PythonApi& api, Session& session, StackSource& stacks, const SessionFacts& facts,
                       const std::string& libraries);

/// Once the adapter is there.
void use_in_break_stops(const AdapterApi& adapter);

}  // namespace numsan
