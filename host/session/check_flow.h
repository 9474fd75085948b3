// What a program did after a check of its own had read something: whether the check raised an exception that the
// program caught. Nothing announces an exception: the check's statement and the next op's line tell.
#pragma once

#include <vector>

#include "host/session/python_source.h"
#include "host/stacks/stack_source.h"
#include "host/track/stack_facts.h"

namespace numsan {

/// `check`: the stack on which a check read its answer. `next`: that of a later op of the same thread. Where `sources`
/// do not show it, the answer is WentOn.
///
/// Raised is said where all of this holds: the check's statement is an `assert`, or an `if` one of whose branches can
/// only end in `raise` of an error; a `try` around it has a handler for errors; and the op is in that handler, or so
/// far back that a `backward()` which follows the check without a condition must have been left out.
AfterCheck after_check(const std::vector<SourceFrame>& check, const std::vector<SourceFrame>& next,
                       PythonSources& sources);

}  // namespace numsan
