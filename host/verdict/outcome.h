// What the verdict has its caller report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/base/ids.h"
#include "host/cause/birth.h"
#include "host/ops/collective_log.h"

namespace numsan {

/// A birth that reached something that matters, with the stack of the place where it did.
struct EscapedBirth {
    Birth birth;
    Severity severity = Severity::Error;
    EscapeInto into = EscapeInto::Output;
    const void* impl = nullptr;  ///< identity of the tensor it reached, for its name
    int64_t step = 0;
    OpSeq seq{};
    StackId stack = 0;  ///< backward births: where backward() was called
    /// Operations of each group that this process had begun before the birth; none: not known, or `again`.
    std::optional<std::vector<CollectiveLog::Begun>> collectives;
    std::string place;   ///< op, stack, node and mechanism: what makes two births the same to a reader
    int64_t times = 1;   ///< births at this place that are reported at once
    bool again = false;  ///< the same place was reported before: count it, do not repeat it
};

/// A further tensor that a reported birth reached.
struct Contamination {
    BirthId birth = 0;
    EscapeInto kind = EscapeInto::Parameter;
    const void* impl = nullptr;
    int64_t since_step = 0;
};

/// A birth that was reported went to other ranks.
struct SentBirth {
    BirthId birth = 0;
    CollectiveFact where;
};

/// Filled under the verdict's lock, used outside it.
struct Outcome {
    std::vector<EscapedBirth> escaped;
    std::vector<Contamination> contaminated;
    std::vector<SentBirth> sent;
    /// Births that this op made, without intended ones: where Verdict::show_births was called.
    std::vector<BirthId> born;
};

}  // namespace numsan
