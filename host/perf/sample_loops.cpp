#include "host/perf/sample_loops.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "host/ops/op_traits.h"
#include "host/perf/value_samples.h"

namespace numsan {
namespace {

int64_t element_bytes(const TensorView& tensor) noexcept {
    return tensor.integer != IntegerType::None ? info(tensor.integer).bytes : info(tensor.dtype).element_bytes();
}

bool is_part(const TensorView& tensor) noexcept {
    return (tensor.flags & kNumber) == 0 && tensor.storage != nullptr && tensor.numel > 0 &&
           tensor.numel * element_bytes(tensor) < tensor.storage_bytes;
}

uint64_t sizes_of(const TensorView& tensor) noexcept {
    uint64_t hash = 1;
    for (int16_t i = 0; i < tensor.ndim; ++i)
        hash = mixed(mixed(hash, static_cast<uint64_t>(tensor.sizes[i])), static_cast<uint64_t>(tensor.strides[i]));
    return hash;
}

/// Up to 16 elements of a tensor like this one whose first element lies at `data`; 0: it does not lie in its storage.
uint64_t values_at(const TensorView& tensor, const char* data) noexcept {
    constexpr int64_t kSampled = 16;
    if (tensor.storage_data == nullptr || tensor.device != Device::Cpu) return 0;
    const int64_t bytes = element_bytes(tensor);
    const int64_t start = data - static_cast<const char*>(tensor.storage_data);
    const int64_t taken = std::min(tensor.numel, kSampled);
    uint64_t hash = 1;
    for (int64_t i = 0; i < taken; ++i) {
        int64_t index = i * tensor.numel / taken;
        int64_t place = start;
        for (int16_t k = tensor.ndim; k-- > 0; index /= tensor.sizes[k])
            place += index % tensor.sizes[k] * tensor.strides[k] * bytes;
        if (place < 0 || place + bytes > tensor.storage_bytes) return 0;
        uint64_t word = 0;
        std::memcpy(&word, static_cast<const char*>(tensor.storage_data) + place,
                    static_cast<size_t>(std::min<int64_t>(8, bytes)));
        hash = mixed(hash, word);
    }
    return hash | 1;
}

uint64_t value_of_number(const TensorView& number) noexcept {
    uint64_t word = 0;
    if (number.data != nullptr)
        std::memcpy(&word, number.data, static_cast<size_t>(std::min<int64_t>(8, element_bytes(number))));
    return word;
}

bool writes(const OpEvent& event, const TensorView& operand) noexcept {
    return std::any_of(event.outputs, event.outputs + event.output_count, [&](const TensorView& output) {
        return (output.flags & kWritten) != 0 && output.data == operand.data;
    });
}

bool overwrites(const OpEvent& event, const TensorView& operand) noexcept {
    return event.op->op_class == OpClass::Overwriting && writes(event, operand);
}

/// Another op of the same kind may do for all slices what it does for one. Random numbers may come from a generator
/// of the slice's own, and how much an index of booleans takes is known from its values only.
bool may_take_all(const OpEvent& event) noexcept {
    const OpTraits& traits = traits_of(event);
    const bool masks = traits.form == Form::Move && event.input_count > 1 &&
                       std::any_of(event.inputs + 1, event.inputs + event.input_count,
                                   [](const TensorView& input) { return input.integer == IntegerType::Bool; });
    return !traits.names.empty() && !traits.has(kRandom) && traits.form != Form::BatchNorm && !masks &&
           event.op->op_class != OpClass::HostRead && event.op->op_class != OpClass::Collective &&
           !wraps_memory(event) && !is_over_lists(event);
}

}  // namespace

/// Views, new memory, and what joins the results of rounds. An op that reads what such an op has written is no part of a
/// round.
bool SampleLoops::is_passed_over(const OpEvent& event) noexcept {
    if (wraps_memory(event)) return false;
    const bool only_views =
        event.output_count > 0 && std::all_of(event.outputs, event.outputs + event.output_count,
                                              [&](const TensorView& output) { return is_view(event, output); });
    return only_views || event.op->op_class == OpClass::Allocation ||
           (event.input_count > 2 && traits_of(event).names.starts_with("cat "));
}

/// Gradients, averages of parameters and other state lie one after another in one storage, too.
const TensorView* SampleLoops::slice_of(const OpEvent& event, const Lineage& lineage) noexcept {
    if (is_over_lists(event)) return nullptr;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (is_part(input) && !is_parameter(input) && !overwrites(event, input) &&
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
    first_ = {at.began, at.own, 0, 0, 0};
    last_ = now_ = first_;
    first_node_ = ~uint64_t(0);
    last_node_ = 0;
}

SampleLoops::Seen SampleLoops::next(const OpEvent& event, const Moment& at, const Lineage& lineage,
                                    bool leads) noexcept {
    Call call;
    if (!may_take_all(event) || !call_of(event, at, lineage, call)) return finish();
    if (period_ == 0 && is_full()) return finish();
    if (period_ == 0 && leads) find_period();
    if (period_ > 0) {
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

/// Fills in `call`; false: it has more operands than there is room for.
bool SampleLoops::call_of(const OpEvent& event, const Moment& at, const Lineage& lineage, Call& call) noexcept {
    call.op = event.op;
    call.seq = number(at.seq);
    call.shape = 1;
    for (int32_t i = 0; i < event.scalar_count; ++i)
        call.shape = mixed(call.shape, std::bit_cast<uint64_t>(event.scalars[i]));
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if ((input.flags & kNumber) != 0) {
            call.shape = mixed(call.shape, value_of_number(input));
            continue;
        }
        if (call.operand_count == kOperands || input.storage == nullptr) return false;
        Operand& operand = call.operands[call.operand_count++];
        operand.storage = input.storage;
        operand.data = static_cast<const char*>(input.data);
        operand.sizes = sizes_of(input);
        operand.written = number(lineage.written_at(input.storage));
        operand.is_read = !overwrites(event, input);
        if (!writes(event, input)) operand.values = values_at(input, operand.data);
        call.shape = mixed(call.shape, operand.sizes);
    }
    call.adds_up = traits_of(event).form == Form::Add &&
                   std::all_of(event.scalars, event.scalars + event.scalar_count, [](double one) { return one == 1; });
    call.slice = slice_written(event);
    return true;
}

SampleLoops::Written SampleLoops::slice_written(const OpEvent& event) noexcept {
    Written slice;
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if ((output.flags & kWritten) == 0 || !is_part(output)) continue;
        slice = {output.storage, static_cast<const char*>(output.data), sizes_of(output), 0, element_bytes(output), 0};
        for (int16_t k = 0; k < output.ndim; ++k) {
            if (output.sizes[k] < 2) continue;
            const std::ptrdiff_t stride = std::abs(output.strides[k]) * element_bytes(output);
            slice.extent += (output.sizes[k] - 1) * stride;
            slice.stride = slice.stride == 0 ? stride : std::min(slice.stride, stride);
        }
    }
    return slice;
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

/// The leader need not be a round's first call: that is one before which no call makes what it or a later one reads.
void SampleLoops::find_phase() noexcept {
    std::array<bool, kMostCalls> inside{};
    for (size_t i = period_; i < 2 * period_; ++i) {
        for (const Operand& one : logged(i).operands) {
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
SampleLoops::Fit SampleLoops::fits(size_t at, Call& call) const noexcept {
    const Call& before = logged(at - period_);
    if (call.op != before.op || call.shape != before.shape || call.operand_count != before.operand_count)
        return Fit::Differs;
    for (size_t i = 0; i < call.operand_count; ++i) {
        if (const Fit fit = fits(at, call, before.operands[i], call.operands[i]); fit != Fit::Repeats) return fit;
    }
    call.slice.apart = call.slice.data - before.slice.data;
    const bool evenly = at < 2 * period_ || call.slice.apart == before.slice.apart;
    if (!evenly) call.slice.apart = 0;
    return Fit::Repeats;
}

SampleLoops::Fit SampleLoops::fits(size_t at, const Call& call, const Operand& before, Operand& now) const noexcept {
    if (!now.is_read || made_in_round(at, now.written)) return Fit::Repeats;
    if (now.written < first_seq_ || is_sliced(at, now.storage)) return moves_on(at, before, now);
    return call.adds_up && now.written == logged(at - period_).seq ? Fit::Repeats : Fit::Needs;
}

SampleLoops::Fit SampleLoops::moves_on(size_t at, const Operand& before, Operand& now) const noexcept {
    if (now.storage != before.storage) return Fit::Differs;
    const std::ptrdiff_t way = now.data - before.data;
    const bool first = at < 2 * period_;
    now.apart = first ? std::array<std::ptrdiff_t, 2>{way, way} : before.apart;
    if (way != now.apart[0] && way != now.apart[1]) {
        if (now.apart[0] != now.apart[1]) return Fit::Differs;
        now.apart[1] = way;
    }
    const bool expected = !first && now.data == before.ahead && before.values_ahead != 0 && now.values != 0;
    return expected && now.values != before.values_ahead ? Fit::Needs : Fit::Repeats;
}

/// What the next round is expected to read is there now.
void SampleLoops::look_ahead(const OpEvent& event, const Call& before, Call& call) const noexcept {
    size_t count = 0;
    for (int32_t i = 0; i < event.input_count && count < call.operand_count; ++i) {
        if ((event.inputs[i].flags & kNumber) != 0) continue;
        Operand& now = call.operands[count];
        now.ahead = now.data + (now.data - before.operands[count++].data);
        const bool kept = now.is_read && !made_in_round(logged_, now.written);
        now.values_ahead = kept ? values_at(event.inputs[i], now.ahead) : 0;
    }
}

bool SampleLoops::made_in_round(size_t at, int64_t seq) const noexcept {
    for (size_t i = round_of(at); i < at; ++i) {
        if (logged(i).seq == seq) return true;
    }
    return false;
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
        const Written& slice = logged(i).slice;
        if (slice.storage == nullptr) continue;
        const std::ptrdiff_t way = std::abs(slice.apart);
        const bool alone = way > 0 && (way >= slice.extent || (rounds + 1) * way <= slice.stride);
        for (size_t k = end - period_; k < end; ++k) {
            for (const Operand& one : logged(k).operands) {
                if (one.storage == slice.storage && one.is_read &&
                    (!alone || one.data != slice.data || one.sizes != slice.sizes))
                    return false;
            }
        }
    }
    return true;
}

void SampleLoops::write_down(const Call& call, const OpEvent& event, const Moment& at) noexcept {
    logged(logged_++) = call;
    ++now_.ops;
    now_.ops_ns += at.took;
    if (at.took < kSmallOpNs) ++now_.small;
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
    if (between == 0 || rounds < kManyRounds || 4 * last_.small < 3 * last_.ops ||
        ns - last_.ops_ns > kMostBetweenNs * last_.ops)
        return {};
    return {Seen::What::Loop, stack_, leader_.op, rounds, ns / between * rounds, first_node_, last_node_};
}

}  // namespace numsan
