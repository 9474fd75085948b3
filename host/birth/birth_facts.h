// What a birth says of its op: the operands and results as they were, and what was measured around it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "host/base/scanner.h"
#include "host/cause/birth.h"
#include "host/track/forward_record.h"
#include "host/track/lineage.h"
#include "host/track/loss_history.h"
#include "host/track/op_context.h"
#include "host/track/parameter_history.h"

namespace numsan {

/// Not thread-safe: the verdict's lock protects it.
class BirthFacts {
  public:
    /// All outlive this.
    BirthFacts(const Scanner& scanner, const LossHistory& losses, const Lineage& lineage,
               const ParameterHistory& parameters)
        : scanner_(scanner), losses_(losses), lineage_(lineage), parameters_(parameters) {}

    /// Adds how much the loss and the parameters have grown by now.
    void grow(Birth& birth) const;
    /// The same, and the operands and results of its op.
    void describe(Birth& birth, const OpEvent& event) const;
    /// Fills in its other features, which root causes are ranked by. It has grown; its inputs, phase and mechanism are
    /// known.
    void measure(Birth& birth, const OpEvent& event, const OpContext& context, const ForwardRecord& forward) const;
    /// Counts the operand that explains the result by powers of two: the one with a remark, else the one with zeros or
    /// subnormal values, else the largest. Its op has just run, and it is described.
    void count_exponents(Birth& birth, const OpEvent& event);
    bool holds(const TensorView& tensor, Kind kind) const;

    struct Update {
        std::string op;
        int64_t step = 0;
        StackId stack = 0;
        bool touched = false;  ///< computed from parameters
    };
    /// The op that updated all of a parameter's storage in this step or the one before and left it finite, where no op
    /// was seen to write it since. `parameter` may be a view.
    std::optional<Update> last_update(const TensorView& parameter, const OpContext& context) const;
    /// The op of this step that wrote all of a tensor's storage and left it finite, where no op was seen to write it
    /// since. The finite values, `health`, show that no other tensor lies at that address by now: their largest
    /// magnitude and their smallest are still those that it wrote, or one of them, of a tensor that was computed.
    std::optional<Update> last_write(const TensorView& tensor, const Health& health, const OpContext& context) const;

  private:
    /// Values that are counted in a run; a sixteenth of them at one stack.
    static constexpr int64_t kMostCounted = int64_t(1) << 26;
    static constexpr int64_t kLargestCounted = int64_t(1) << 22;  ///< of one tensor

    /// The op before this one that wrote all of the tensor's storage last, was read and left it finite.
    std::optional<Lineage::Record> whole_write(const TensorView& tensor, const OpContext& context) const;

    int64_t counted_ = 0;
    std::map<StackId, int64_t> counted_at_;
    const Scanner& scanner_;
    const LossHistory& losses_;
    const Lineage& lineage_;
    const ParameterHistory& parameters_;
};

}  // namespace numsan
