#include "host/perf/loops/sample_loops.h"

#include <algorithm>
#include <cstdlib>

#include "host/ops/op_traits.h"
#include "host/ops/operands.h"

namespace numsan {

/// Views, new memory, and what joins the results of rounds: an op that reads what such an op has written is no part of
/// a round.
bool SampleLoops::is_passed_over(const OpEvent& event) noexcept {
    if (wraps_memory(event)) return false;
    return computes_nothing(event) || (event.input_count > 2 && traits_of(event).names.starts_with("cat "));
}

/// Gradients, averages of parameters and other state lie one after another in one storage, too.
const TensorView* SampleLoops::slice_of(const OpEvent& event, const Lineage& lineage) noexcept {
    if (is_over_lists(event)) return nullptr;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (is_slice(input) && !is_parameter(input) && !overwrites(event, input) &&
            (lineage.flags(input.storage) & (Lineage::kState | Lineage::kGradient)) == 0)
            return &input;
    }
    return nullptr;
}

bool SampleLoops::is_leader(const OpEvent& event, const TensorView& slice) const noexcept {
    return event.op == leader_.op && slice.storage == leader_.storage && sizes_of(slice) == leader_.sizes;
}

/// True: the same op has lately read another slice of the tensor.
bool SampleLoops::has_read_another(const OpEvent& event, const TensorView& slice) noexcept {
    const Reader now{event.op, slice.storage, slice.data, sizes_of(slice)};
    const bool another = std::any_of(readers_.begin(), readers_.end(), [&](const Reader& one) {
        return one.op == now.op && one.storage == now.storage && one.sizes == now.sizes && one.data != now.data;
    });
    if (another)
        leader_ = now;
    else
        readers_[reader_count_++ % readers_.size()] = now;
    return another;
}

void SampleLoops::begin(const Moment& at, StackId stack) noexcept {
    stack_ = stack;
    goes_on_ = true;
    first_seq_ = number(at.seq);
    logged_ = returned_at_ = period_ = 0;
    first_ = {at.began, at.own};
    last_ = now_ = first_;
    first_node_ = ~uint64_t(0);
    last_node_ = 0;
}

SampleLoops::Seen SampleLoops::next(const OpEvent& event, const Moment& at, const Lineage& lineage,
                                    bool leads) noexcept {
    LoopCall call;
    if (!loop_call(event, at.seq, lineage, call)) return finish();
    if (period_ == 0 && is_full()) return finish();
    if (period_ == 0 && leads) find_period();
    if (period_ > 0) {
        sample_expected(event, call);
        Fit fit = leads || logged_ % period_ != 0 ? fits(logged_, call) : Fit::Differs;
        if (fit == Fit::Repeats && round_of(logged_) == logged_ && !slices_are_apart(logged_)) fit = Fit::Needs;
        if (fit == Fit::Repeats)
            look_ahead(event, logged(logged_ - period_), call);
        else if (logged_ < 4 * period_)
            period_ = 0;  // a round may be longer, and have a loop of its own inside
        else if (fit == Fit::Differs)
            return finish();
        else
            return stop();
    }
    if (leads) {
        last_ = now_;
        last_.began = at.began;
        last_.own = at.own;
        returned_at_ = logged_;
    }
    write_down(call, event, at);
    return {};
}

/// The leader is called again: the log may be two rounds.
void SampleLoops::find_period() noexcept {
    if (logged_ % 2 != 0 || logged_ == 0) return;
    period_ = logged_ / 2;
    find_phase();
    for (size_t i = period_; i < logged_; ++i) {
        if (fits(i, logged(i)) == Fit::Repeats) continue;
        period_ = 0;
        return;
    }
}

/// The leader need not be a round's first call, which is one past which no value goes from a call to a later one.
void SampleLoops::find_phase() noexcept {
    std::array<bool, kMostCalls> inside{};
    for (size_t i = period_; i < 2 * period_; ++i) {
        for (const LoopOperand& one : logged(i).operands) {
            size_t maker = i - 1;
            while (maker > i - period_ && logged(maker).seq != one.written) --maker;
            if (!one.is_read || maker == i - period_ || is_sliced(i, one.storage)) continue;
            for (size_t k = maker + 1; k <= i; ++k) inside[k % period_] = true;
        }
    }
    const auto end = inside.begin() + static_cast<std::ptrdiff_t>(period_);
    const auto first = std::find(inside.begin(), end, false);
    phase_ = first == end ? 0 : static_cast<size_t>(first - inside.begin());
}

/// Whether the call at this place does what the one of the round before did.
SampleLoops::Fit SampleLoops::fits(size_t at, LoopCall& call) const noexcept {
    const LoopCall& before = logged(at - period_);
    if (call.op != before.op || call.shape != before.shape || call.operand_count != before.operand_count)
        return Fit::Differs;
    call.is_sum = false;
    for (size_t i = 0; i < call.operand_count; ++i) {
        if (const Fit fit = fits(at, call, before.operands[i], call.operands[i]); fit != Fit::Repeats) return fit;
    }
    call.slice.apart = call.slice.data - before.slice.data;
    const bool evenly = at < 2 * period_ || call.slice.apart == before.slice.apart;
    if (!evenly) call.slice.apart = 0;
    return Fit::Repeats;
}

SampleLoops::Fit SampleLoops::fits(size_t at, LoopCall& call, const LoopOperand& before,
                                   LoopOperand& now) const noexcept {
    if (!now.is_read) return Fit::Repeats;
    if (const LoopCall* maker = made_in_round(at, now)) return maker->is_sum ? Fit::Needs : Fit::Repeats;
    if (now.written < first_seq_ || is_sliced(at, now.storage)) return moves_on(at, before, now);
    if (!call.adds_up || now.written != logged(at - period_).seq) return Fit::Needs;
    call.is_sum = true;
    return Fit::Repeats;
}

SampleLoops::Fit SampleLoops::moves_on(size_t at, const LoopOperand& before, LoopOperand& now) const noexcept {
    if (now.storage != before.storage) return Fit::Differs;
    const std::ptrdiff_t way = now.data - before.data;
    const bool first = at < 2 * period_;
    now.apart = first ? std::array<std::ptrdiff_t, 2>{way, way} : before.apart;
    if (way != now.apart[0] && way != now.apart[1]) {
        if (now.apart[0] != now.apart[1]) return Fit::Differs;
        now.apart[1] = way;
    }
    const bool sampled = !first && now.values != 0;  // where the round before has looked ahead
    return sampled && now.values != before.values_ahead ? Fit::Needs : Fit::Repeats;
}

/// What the next round is expected to read is there now.
void SampleLoops::look_ahead(const OpEvent& event, const LoopCall& before, LoopCall& call) const noexcept {
    for (size_t i = 0; i < call.operand_count; ++i) {
        LoopOperand& now = call.operands[i];
        now.ahead = now.data + (now.data - before.operands[i].data);
        const bool kept = now.is_read && made_in_round(logged_, now) == nullptr;
        now.values_ahead = kept ? values_at(event.inputs[now.input], now.ahead) : 0;
    }
}

/// Where the round before has looked ahead.
void SampleLoops::sample_expected(const OpEvent& event, LoopCall& call) const noexcept {
    const LoopCall& before = logged(logged_ - period_);
    for (size_t i = 0; i < std::min(call.operand_count, before.operand_count); ++i) {
        LoopOperand& now = call.operands[i];
        const TensorView& input = event.inputs[now.input];
        if (before.operands[i].values_ahead != 0 && now.data == before.operands[i].ahead && !writes_to(event, input))
            now.values = values_at(input, now.data);
    }
}

/// Arrays of numpy's come without an op, at addresses of storages that are gone; their memory is another one.
const LoopCall* SampleLoops::made_in_round(size_t at, const LoopOperand& operand) const noexcept {
    for (size_t i = round_of(at); i < at; ++i) {
        const LoopCall& one = logged(i);
        if (one.seq != operand.written) continue;
        return std::find(one.memory.begin(), one.memory.end(), operand.memory) == one.memory.end() ? nullptr : &one;
    }
    return nullptr;
}

/// The last round has written a slice of it.
bool SampleLoops::is_sliced(size_t at, const void* storage) const noexcept {
    for (size_t i = at - period_; i < at; ++i) {
        if (logged(i).slice.storage == storage) return true;
    }
    return false;
}

/// Of a tensor that it writes slices of, the round before `end` reads the slice that it writes, which no other round
/// writes: rows that lie further apart than they are long, or columns, of which all rounds lie between two elements.
bool SampleLoops::slices_are_apart(size_t end) const noexcept {
    const auto rounds = static_cast<std::ptrdiff_t>(end / period_);
    for (size_t i = end - period_; i < end; ++i) {
        const LoopSlice& slice = logged(i).slice;
        if (slice.storage == nullptr) continue;
        const std::ptrdiff_t way = std::abs(slice.apart);
        const bool alone = way > 0 && (way >= slice.extent || (rounds + 1) * way <= slice.stride);
        for (size_t k = end - period_; k < end; ++k) {
            for (const LoopOperand& one : logged(k).operands) {
                if (one.storage == slice.storage && one.is_read &&
                    (!alone || one.data != slice.data || one.sizes != slice.sizes))
                    return false;
            }
        }
    }
    return true;
}

void SampleLoops::write_down(const LoopCall& call, const OpEvent& event, const Moment& at) noexcept {
    logged(logged_++) = call;
    ++now_.ops;
    now_.ops_ns += at.took;
    if (at.took < kSmallOpNs)
        ++now_.small;
    else
        now_.large_ns += at.took;
    if (event.forward_sequence == ~uint64_t(0)) return;
    first_node_ = std::min(first_node_, event.forward_sequence);
    last_node_ = std::max(last_node_, event.forward_sequence);
}

SampleLoops::Seen SampleLoops::interrupt() noexcept {
    if (reader_count_ > 0) readers_ = {};
    reader_count_ = 0;
    return finish();
}

/// It is no such loop, nor is it elsewhere in the run.
SampleLoops::Seen SampleLoops::stop() noexcept {
    goes_on_ = false;
    return {Seen::What::None, stack_};
}

/// The round that was going on may have been the last one. Of the first one the log has nothing.
SampleLoops::Seen SampleLoops::finish() noexcept {
    if (!goes_on_) return {};
    goes_on_ = false;
    const int64_t between = period_ == 0 ? 0 : static_cast<int64_t>(returned_at_ / period_);
    const int64_t rounds = between + 2;
    const int64_t ns = last_.began - first_.began - (last_.own - first_.own);
    const bool small = 4 * last_.small >= 3 * last_.ops && 2 * last_.large_ns <= ns;
    const bool only_ops = ns - last_.ops_ns <= kMostBetweenNs * last_.ops;
    if (between == 0 || rounds < kManyRounds || !small || !only_ops) return {};
    return {Seen::What::Loop, stack_, leader_.op, rounds, ns / between * rounds, first_node_, last_node_};
}

}  // namespace numsan
