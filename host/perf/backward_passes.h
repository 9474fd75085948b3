// Backward passes of a step: which of the gradients that they hand to parameters no op reads, and how long they go on
// for those.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/base/ids.h"
#include "host/stacks/stack_source.h"
#include "host/track/lineage.h"

namespace numsan {

/// Of one thread. A pass is a span of op numbers. What it wrote counts as used where an op outside of it reads it (an
/// optimizer's, a norm for a log, another pass), and where an op inside of it hands it on. The pass is of use up to the
/// last write that is used, and lost from there to the last gradient of a parameter. Of what may be used unseen nothing
/// is said: of a pass of which no op reads anything, of leaves that the step has made, of gradients whose maker is not
/// known or that lie in no storage, and of parameters whose values something changes that is no op. Constant memory.
class BackwardPasses {
  public:
    /// Any op, before the lineage knows of it. `outside`: it belongs to no pass; `now`: the lowest number that it may
    /// have; `first`: that of the step's first op. Where it uses what a pass of an earlier step left, the stack of a
    /// pass of which nothing is to be said any more, else 0.
    StackId reads(const OpEvent& event, bool outside, OpSeq now, OpSeq first, const Lineage& lineage) noexcept;

    /// An op of autograd, once the lineage knows of it. `last`: the highest number that it may have; times are without
    /// what numsan took. `stack` is asked for once a pass.
    template <class Capture>
    void op(const OpEvent& event, OpSeq last, int64_t began, int64_t ended, Capture&& stack) noexcept {
        if (begins(event.graph_task, last) && !full_) {
            passes_[count_++] = {event.graph_task, now_, now_, now_ - 1, stack()};
            time(now_ - 1, began, nullptr);
        }
        if (full_) return;
        passes_[count_ - 1].last = number(last);
        time(number(last), ended, event.output_count == 1 ? event.outputs[0].storage_data : nullptr);
    }

    /// A node of a pass begins.
    void node() noexcept { in_leaf_ = false; }
    /// It hands `variable` this gradient.
    void leaf(const TensorView& variable, const TensorView& gradient, OpSeq first, const Lineage& lineage) noexcept;

    /// Calls lost(stack, ns) for each pass that went on for gradients that nothing has read.
    template <class Lost>
    void end_step(Lost&& lost) noexcept {
        judge();
        for (size_t i = 0; i < count_ && !full_; ++i) {
            const Pass& pass = passes_[i];
            const int64_t ns = pass.dropped > pass.used ? time_of(pass.dropped) - time_of(pass.used) : 0;
            if (ns > 0 && pass.used >= pass.first) lost(pass.stack, ns);
        }
        begin_step(true);
    }
    /// `follows`: the step before it was looked at, too.
    void begin_step(bool follows) noexcept;

  private:
    static constexpr size_t kPasses = 32;
    static constexpr size_t kTimes = 4096;
    static constexpr size_t kLeaves = 1024;
    static constexpr size_t kHanded = 2048;
    static constexpr int64_t kSampled = 64;  ///< words of a parameter

    struct Pass {
        int64_t graph_task = -1;
        int64_t first = 0, last = 0;  ///< numbers of its ops
        int64_t used = -1;            ///< of the last op whose result is used; none: first - 1
        StackId stack = 0;
        int64_t dropped = -1;  ///< of the op that wrote its last gradient which nothing has read
        bool has(int64_t seq) const noexcept { return first <= seq && seq <= last; }
        void use(int64_t seq) noexcept {
            if (seq > used) used = seq;
        }
    };
    /// A parameter, over steps.
    struct Leaf {
        const void* storage = nullptr;
        int64_t numel = 0;
        uint64_t sample = 0;
        int64_t step = -1;     ///< the last in which it was handed a gradient
        int64_t read = -1;     ///< the last in which an op read one of its gradients
        bool same = false;     ///< its values were those of the step before
        bool written = false;  ///< an op wrote to it, once it had its gradient
    };
    /// A gradient of the step that goes on.
    struct Handed {
        const void* storage = nullptr;
        int64_t numel = 0;
        int64_t seq = 0;  ///< of the op that wrote it
        uint32_t pass = 0;
        uint32_t leaf = 0;
    };
    struct Time {
        int64_t seq = 0;
        int64_t ended = 0;
        const void* data = nullptr;  ///< what it wrote; null: not known
    };
    struct Times {
        std::array<Time, kTimes> all{};
        size_t count = 0;
        const Time* of(int64_t seq) const noexcept;
    };

    bool begins(int64_t graph_task, OpSeq last) noexcept;
    bool hands_on(const OpEvent& event, const void* fresh, const Lineage& lineage) const noexcept;
    StackId carries_on(const OpEvent& event, const void* fresh, OpSeq first, const Lineage& lineage) noexcept;
    void use_all() noexcept;
    void use_unknown(const TensorView& input) noexcept;
    Leaf* find(const void* storage, bool make) noexcept;
    void judge() noexcept;
    bool left_over(const TensorView& input, int64_t seq) const noexcept;
    void time(int64_t seq, int64_t ended, const void* data) noexcept;
    int64_t time_of(int64_t seq) const noexcept;

    std::array<Pass, kPasses> passes_{};
    std::array<Pass, kPasses> before_{};  ///< of the step before
    size_t count_ = 0, before_count_ = 0;
    std::array<Times, 2> times_{};  ///< of this step and of the one before, which take turns
    std::array<Leaf, kLeaves> leaves_{};
    size_t leaf_count_ = 0;
    std::array<Handed, kHanded> handed_{};
    size_t handed_count_ = 0;
    int64_t step_ = 0;
    int64_t now_ = 0;
    const void* allocated_ = nullptr;  ///< by the op before, whose result it is
    bool in_leaf_ = false;
    bool full_ = false;  ///< of this step nothing is said: there is no room, or passes run inside of passes
};

}  // namespace numsan
