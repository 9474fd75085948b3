// Ops of the past, shown to the verdict in their order: the end of every look back, on the host or on a device.
#pragma once

#include <vector>

#include "host/base/scanner.h"
#include "host/event/context_builder.h"
#include "host/event/op_log.h"
#include "host/verdict/verdict.h"

namespace numsan {

/// One thread at a time.
class PastOps {
  public:
    /// `scanner` answers for the tensors of such ops. All outlive this.
    PastOps(const Scanner& scanner, ContextBuilder& contexts, Verdict& verdict)
        : scanner_(scanner), contexts_(contexts), verdict_(verdict) {}

    /// Oldest first. What is left of their results has been looked at (`LoggedOp::bad`), what is not is marked
    /// kUnavailable.
    void judge(const std::vector<LoggedOp*>& ops, Outcome& outcome);

  private:
    const Scanner& scanner_;
    ContextBuilder& contexts_;
    Verdict& verdict_;
};

}  // namespace numsan
