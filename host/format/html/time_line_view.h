// The time line of a run, or of the runs of one job: what happened in which step.
#pragma once

#include <vector>

#include "host/format/html/page.h"
#include "host/format/known_findings.h"

namespace numsan::html {

/// Steps that a loss scaler skipped, as reports list them; of the runs together.
using SkippedSteps = std::set<fields::JsonInteger>;

/// A lane for each phase that has findings, one for what is not finite from then on, one for skipped steps; false where
/// nothing happened. `steps` is how many the longest run has. The n-th of `findings` has the anchor finding-n. [MT]
Data time_line_view(const std::vector<const KnownFinding*>& findings, const SkippedSteps& skipped,
                    fields::JsonInteger steps);

}  // namespace numsan::html
