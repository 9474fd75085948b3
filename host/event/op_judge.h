// What becomes of an op whose outputs were read: most are remembered, a few go to the verdict.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "host/birth/zeros.h"
#include "host/cause/measure.h"
#include "host/event/context_builder.h"
#include "host/event/output_scan.h"
#include "host/options/options.h"
#include "host/track/headroom.h"
#include "host/track/lineage.h"
#include "host/track/parameter_history.h"
#include "host/verdict/verdict.h"

namespace numsan {

/// [MT] What every op needs is in this header, so that Session::op_end is one function. `ranges` are of the first
/// kMaxRanges outputs.
class OpJudge {
  public:
    /// What it is made with outlives it.
    OpJudge(const Options& options, ContextBuilder& contexts, Lineage& lineage, ParameterHistory& parameters,
            Verdict& verdict);

    /// Bit i: output i, of a forward op, is of a 16- or 8-bit type and close to its largest number.
    uint16_t near_overflow(const OpEvent& event, const OpContext& context, const Range* ranges) noexcept {
        if (context.headroom <= 0 || context.node != nullptr || context.in_backward || context.in_optimizer ||
            context.on_state || !looks_for_near_overflow(context.step))
            return 0;
        uint32_t outputs = 0;
        for (int32_t i = 0; i < event.output_count && i < kMaxRanges; ++i) {
            if (ranges[i].max_magnitude >= near_overflow_from_[static_cast<size_t>(event.outputs[i].dtype)] &&
                !ranges[i].suspicious)
                outputs |= 1u << i;
        }
        return outputs != 0 && is_due(event, context) ? static_cast<uint16_t>(outputs) : uint16_t(0);
    }

    /// Whether the verdict may have something to do. `bad`: outputs that hold something that is not finite.
    bool concerns(const OpEvent& event, const OpContext& context, OutputSet bad, const Range* ranges) const noexcept {
        return verdict_.interesting(event, bad) ||
               (context.underflow && looks_for_zeros(context.step) && any_vanishes(event, context, ranges)) ||
               context.near_overflow != 0;
    }

    /// Shows the op to the verdict, if it concerns that, and remembers it. False: it does not. `operands`: as for
    /// remember().
    bool judge(const OpEvent& event, OpContext& context, OutputSet bad, const Range* ranges,
               const ForwardMap::Made& made, bool accumulates, Outcome& outcome, const Operands* operands = nullptr);

    /// Leaves what the ops after this one may ask: who wrote a storage, from what, how large it was.
    void remember(const OpEvent& event, const OpContext& context, const Range* ranges, bool accumulates,
                  const Operands* operands = nullptr) noexcept {
        if (event.op->op_class == OpClass::Allocation) [[unlikely]] {
            for (int32_t i = 0; i < event.output_count; ++i) lineage_.forget(event.outputs[i].storage);
            return;
        }
        // A gradient as AccumulateGrad leaves it, an average that starts as zeros_like(parameter): what optimizers
        // work on.
        const bool shaped = event.input_count == 1 && is_parameter(event.inputs[0]) && is_like_operand(event.op->name);
        lineage_.at_step(context.step, context.seq);
        const bool wrapped = wraps_memory(event);
        // What was remembered of the address of new memory says nothing of it.
        const uint16_t flags =
            wrapped ? uint16_t(0)
                    : static_cast<uint16_t>((context.touched ? Lineage::kTouched : 0) |
                                            (context.in_module || context.from_module ? Lineage::kInModule : 0) |
                                            (context.node != nullptr ? Lineage::kBackward : 0) |
                                            (context.on_state || accumulates || shaped ? Lineage::kState : 0));
        const bool collective = event.op->op_class == OpClass::Collective;  // its results are not there yet
        // What was asked before holds until the first output is remembered.
        const Lineage::Known* known =
            operands != nullptr && event.output_count == 1 && !wrapped ? operands->known : nullptr;
        for (int32_t i = 0; i < event.output_count; ++i) {
            const TensorView& output = event.outputs[i];
            if (wrapped) [[unlikely]]
                lineage_.forget(output.storage);  // new memory at an address that may be remembered
            else if (is_view(event, output) || (event.inner_ops_shown && lineage_.known(output.storage).last != 0))
                continue;
            const Range range = i < kMaxRanges ? ranges[i] : Range{};
            if (is_parameter(output) && (output.flags & kWritten) != 0 && !range.suspicious && !collective)
                add_parameter(event, output, range);
            lineage_.add(event, output, range, context.seq, context.stack, flags, known);
        }
    }

    /// A gradient has reached a parameter: what optimizers write from now on is learned.
    void begin_learning() noexcept { learning_.store(true, std::memory_order_relaxed); }

  private:
    /// A place whose results are large is looked at in the first steps and then in some: whether they stay so.
    static bool looks_for_near_overflow(int64_t step) { return step < 16 || (step & 15) == 0; }
    static bool any_vanishes(const OpEvent& event, const OpContext& context, const Range* ranges);
    static bool is_like_operand(const char* op);
    bool is_due(const OpEvent& event, const OpContext& context) noexcept;
    /// What lineage remembers of it is from before this write.
    void add_parameter(const OpEvent& event, const TensorView& output, const Range& range) noexcept;

    ContextBuilder& contexts_;
    Lineage& lineage_;
    ParameterHistory& parameters_;
    Verdict& verdict_;
    std::atomic<bool> learning_{false};
    uint64_t near_overflow_from_[kDTypeCount] = {};  ///< by type: see near_overflow_pattern()
    NearOverflowPlaces near_overflow_places_;
};

}  // namespace numsan
