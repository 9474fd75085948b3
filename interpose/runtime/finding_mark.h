// A finding as a mark on the time line of another tool.
#pragma once

#include "host/finding/finding.h"

namespace numsan {

/// What the tool shows: the code as the mark's category, the step as its payload, the rest as text. [MT] May throw
/// std::bad_alloc.
void mark_finding(const Finding& finding);

}  // namespace numsan
