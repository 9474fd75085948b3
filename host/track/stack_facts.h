// What the analysis asks about stacks: whether the innermost code is a certain part of torch.
#pragma once

#include <cstdint>

#include "host/stacks/stack_source.h"

namespace numsan {

/// What an op shows of a check of the program's that ran before it on the same thread.
enum class AfterCheck : uint8_t {
    Within,  ///< it belongs to the check itself
    Raised,  ///< the check raised an exception that the program caught
    WentOn,  ///< nothing says so
};

/// [MT] Asked for few events, under the verdict's lock but for after_check(), which may read files.
class StackFacts {
  public:
    virtual ~StackFacts() = default;
    virtual bool is_loss(StackId) const = 0;      ///< torch makes the first gradient of a backward()
    virtual bool is_scaler(StackId) const = 0;    ///< the innermost frame is a loss scaler's
    virtual bool is_loading(StackId) const = 0;   ///< inside a load_state_dict()
    virtual bool in_function(StackId) const = 0;  ///< inside an autograd.Function's forward
    /// `check`: where the check read its answer; `next`: where the op runs.
    virtual AfterCheck after_check(StackId check, StackId next) const = 0;
    virtual bool in_generated(StackId) const = 0;  ///< called by code that torch.compile wrote around its kernels
    /// Within the graph of a compiled region that is run once more, op by op (interpose/python/scripts).
    virtual bool in_replay(StackId) const = 0;
    /// Both within one call of a compiled region, or of its backward pass, or two from the same line.
    virtual bool in_same_region(StackId, StackId) const = 0;
    virtual bool in_package(StackId) const = 0;  ///< where numsan looks at what a package of AOTInductor's handed back

    /// The same for stacks of the same functions and lines, whichever modules they run in and whenever they were seen.
    virtual uint64_t place(StackId) const = 0;
    /// Where the stacks come from; null: they are numbers only.
    virtual const StackSource* source() const { return nullptr; }
};

}  // namespace numsan
