// What every event passes through, whether it touches a device or not. Made once for a session.
#pragma once

#include <atomic>
#include <cstdint>

#include "host/base/scanner.h"
#include "host/event/context_builder.h"
#include "host/event/op_coverage.h"
#include "host/event/op_judge.h"
#include "host/event/output_scan.h"
#include "host/event/past_ops.h"
#include "host/ops/collective_log.h"
#include "host/options/options.h"
#include "host/stacks/stack_source.h"
#include "host/track/lineage.h"
#include "host/track/parameter_history.h"
#include "host/track/stack_facts.h"
#include "host/verdict/verdict.h"

namespace numsan {

struct EventParts {
    /// `host` reads host memory; `readings` answers for the tensors of the event that is judged, on devices too. What
    /// it is made with outlives it.
    EventParts(const Options& given, const Scanner& host, const Scanner& readings, StackSource& stacks,
               const StackFacts& stack_facts, bool has_python)
        : options(given),
          facts(stack_facts),
          contexts(given, stacks, lineage, has_python),
          scan(host),
          verdict(readings, stack_facts, lineage, parameters),
          judge(given, contexts, lineage, parameters, verdict),
          past(readings, contexts, verdict) {
        verdict.use(collectives);
    }

    /// What knows the kernels that ops launched, and keeps those of captured ones. Before the first op.
    void use(LaunchesOf launches_of, void (*keep)(const LaunchSpan& span)) {
        verdict.set_launches_of(launches_of);
        keep_launches = keep;
    }

    const Options& options;
    const StackFacts& facts;
    std::atomic<int64_t> ops{0};
    OpCoverage coverage;
    Lineage lineage;
    CollectiveLog collectives;
    ParameterHistory parameters;
    ContextBuilder contexts;
    OutputScan scan;
    Verdict verdict;
    OpJudge judge;
    PastOps past;
    void (*keep_launches)(const LaunchSpan& span) = nullptr;  ///< SessionFacts::keep_launches
};

}  // namespace numsan
