// How a launcher numbered this process, by the environment that it set.
#pragma once

#include <optional>
#include <string>

#include "host/finding/run_summary.h"

namespace numsan {

/// The value of a variable; null where it is not set. For tests.
using GetVariable = const char* (*)(const char* name);

/// What no launcher says is none.
LaunchFacts launch_facts(GetVariable get);

/// Of this process.
LaunchFacts launch_facts();

}  // namespace numsan
