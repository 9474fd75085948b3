// The look back on the host: something bad has shown that no op is known to have made, as the tier did not read every
// output.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "host/base/ids.h"
#include "host/base/scanner.h"
#include "host/event/op_log.h"
#include "host/event/past_ops.h"
#include "host/event/thread_state.h"
#include "host/event/tier_policy.h"
#include "host/track/lineage.h"
#include "host/verdict/verdict.h"

namespace numsan {

/// [MT]
class LookBack {
  public:
    /// `scanner` reads host memory. All outlive this.
    LookBack(Tier tier, const Scanner& scanner, const Lineage& lineage, Verdict& verdict, PastOps& past)
        : tier_(tier), scanner_(scanner), lineage_(lineage), verdict_(verdict), past_(past) {}

    TierPolicy& tier() { return tier_; }
    /// Ops whose outputs the tier left out; usable once the adapter is there, if the tier leaves any out.
    OpLog& log() { return log_; }

    /// Before the verdict sees an op: where the values that it read came from. `bad` as for Verdict::op.
    void look_behind(const OpEvent& event, OutputSet bad, int64_t step, Outcome& outcome);
    /// Before a gradient reaches its leaf.
    void look_behind(const NodeEvent& event, int64_t step, Outcome& outcome);

    /// Unpins what a look back of this thread pinned, in `log`. Dropping a last reference may run the program's code,
    /// whose ops are none of this event's.
    static void unpin(ThreadState& thread, const OpLog& log) noexcept;

  private:
    bool is_bad(const TensorView& tensor) const;
    void look_back(Outcome& outcome);
    void read_what_is_left(LoggedOp& op, const std::map<const void*, OpSeq>& last_writes,
                           std::vector<const void*>& pinned);

    TierPolicy tier_;
    OpLog log_;
    const Scanner& scanner_;
    const Lineage& lineage_;
    Verdict& verdict_;
    PastOps& past_;
};

}  // namespace numsan
