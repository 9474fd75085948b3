// Loops over samples, heads or columns: the same small ops on one slice of a tensor after another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/base/ids.h"
#include "host/perf/loops/loop_calls.h"
#include "host/stacks/stack_source.h"
#include "host/track/lineage.h"

namespace numsan {

/// Of one thread. A loop begins where an op reads another slice of a tensor than before; the op leads its rounds. From
/// then on calls are written down, until those from one call of the leader to a later one repeat themselves. They have
/// to do so to the end: the same ops, sizes and numbers, and each operand
///  * was made in the same round, by one of its calls,
///  * or was there before the loop, and is the same one in each round or a slice that lies as far from the one before,
///  * or is what the same call has added up so far,
///  * or is a slice that the round itself writes, and no other round does.
/// Then no round needs another one. What Python computes between ops is no op: a slice that is not what it was when the
/// round before began shows it, and time without ops. Constant memory.
class SampleLoops {
  public:
    /// Set by hand: rounds from which on one op for all is worth it.
    static constexpr int64_t kManyRounds = 16;
    /// Set by hand: a few times what it takes to call an op.
    static constexpr int64_t kSmallOpNs = 10'000;
    /// Set by hand: mean time between ops from which on the loop does something else, too; some five times what Python
    /// takes from one op to the next.
    static constexpr int64_t kMostBetweenNs = 50'000;

    struct Seen {
        /// None: what looks like a loop at this stack is none.
        enum class What : uint8_t { Nothing, Loop, None } what = What::Nothing;
        StackId stack = 0;
        const OpInfo* op = nullptr;
        int64_t rounds = 0;
        int64_t ns = 0;                          ///< all ops, and what lies between them
        uint64_t first_node = 1, last_node = 0;  ///< numbers of the autograd nodes that it made
    };
    /// When an op ran. `own`: of all time so far, what was numsan's.
    struct Moment {
        OpSeq seq;
        int64_t began;
        int64_t took;
        int64_t own;
    };

    /// An op of the forward pass, before the lineage knows of it. `stack` is asked for where an op may lead a loop.
    template <class Capture>
    Seen saw(const OpEvent& event, const Moment& at, const Lineage& lineage, Capture&& stack) noexcept {
        if (is_passed_over(event)) return {};
        const TensorView* slice = slice_of(event, lineage);
        if (!goes_on_ && slice == nullptr) return {};
        const bool leads = goes_on_ && slice != nullptr && is_leader(event, *slice) && stack() == stack_;
        const Seen seen = goes_on_ ? next(event, at, lineage, leads) : Seen{};
        if (goes_on_ || slice == nullptr || !has_read_another(event, *slice)) return seen;
        begin(at, stack());
        next(event, at, lineage, true);
        return seen;
    }

    /// An op that is shown to nobody, or the step's end: no loop goes on behind it.
    Seen interrupt() noexcept;

  private:
    static constexpr size_t kMostCalls = 64;  ///< of a round
    static constexpr size_t kLog = 2 * kMostCalls;

    /// An op that has read a slice.
    struct Reader {
        const OpInfo* op = nullptr;
        const void* storage = nullptr;
        const void* data = nullptr;
        uint64_t sizes = 0;
    };
    /// From the loop's begin to an op.
    struct Counts {
        int64_t began = 0, own = 0;  ///< of the op
        int64_t ops = 0, small = 0;
        int64_t ops_ns = 0, large_ns = 0;
    };
    enum class Fit : uint8_t {
        Repeats,
        Differs,
        Needs,  ///< what an earlier round made, or what was written unseen
    };

    static bool is_passed_over(const OpEvent& event) noexcept;
    static const TensorView* slice_of(const OpEvent& event, const Lineage& lineage) noexcept;
    bool is_leader(const OpEvent& event, const TensorView& slice) const noexcept;
    bool has_read_another(const OpEvent& event, const TensorView& slice) noexcept;
    void begin(const Moment& at, StackId stack) noexcept;
    Seen next(const OpEvent& event, const Moment& at, const Lineage& lineage, bool leads) noexcept;
    bool is_full() const noexcept { return logged_ == kLog || logged_ - returned_at_ == kMostCalls; }
    void find_period() noexcept;
    void find_phase() noexcept;
    size_t round_of(size_t at) const noexcept { return at - (at - phase_) % period_; }
    Fit fits(size_t at, LoopCall& call) const noexcept;
    Fit fits(size_t at, LoopCall& call, const LoopOperand& before, LoopOperand& now) const noexcept;
    Fit moves_on(size_t at, const LoopOperand& before, LoopOperand& now) const noexcept;
    const LoopCall* made_in_round(size_t at, const LoopOperand& operand) const noexcept;
    bool is_sliced(size_t at, const void* storage) const noexcept;
    bool slices_are_apart(size_t end) const noexcept;
    void sample_expected(const OpEvent& event, LoopCall& call) const noexcept;
    void look_ahead(const OpEvent& event, const LoopCall& before, LoopCall& call) const noexcept;
    void write_down(const LoopCall& call, const OpEvent& event, const Moment& at) noexcept;
    Seen stop() noexcept;
    Seen finish() noexcept;

    LoopCall& logged(size_t at) noexcept { return log_[at % kLog]; }
    const LoopCall& logged(size_t at) const noexcept { return log_[at % kLog]; }

    std::array<Reader, 16> readers_{};
    size_t reader_count_ = 0;
    Reader leader_;
    StackId stack_ = 0;                 ///< of the leader
    std::array<LoopCall, kLog> log_{};  ///< the last calls
    bool goes_on_ = false;
    int64_t first_seq_ = 0;
    size_t logged_ = 0;
    size_t returned_at_ = 0;     ///< the leader's last call
    size_t phase_ = 0;           ///< of the first call of a round
    size_t period_ = 0;          ///< calls of a round; 0: not known yet
    Counts first_, last_, now_;  ///< at the leader's first and last call, and so far
    uint64_t first_node_ = 0, last_node_ = 0;
};

}  // namespace numsan
