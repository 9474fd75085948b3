#include "host/verdict/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "host/base/thresholds.h"
#include "host/cause/measure.h"
#include "host/ops/op_traits.h"
#include "host/track/headroom.h"
#include "host/verdict/zeros.h"

namespace numsan {
namespace {

constexpr size_t kMaxStateWrites = 256;

/// A root of something infinite: what overflowed need not be large in the end.
bool shrinks(const OpEvent& event) {
    const OpTraits& op = traits_of(event);
    return op.is({Form::Root, Form::Norm}) ||
           (op.form == Form::Power && event.scalar_count > 0 && event.scalars[0] > 0 && event.scalars[0] < 1);
}

/// Whether a pass over the lost updates of a parameter is due: often at first, then ever more seldom.
/// add_(), lerp_(): computes what it writes from what is there, unlike copy_() and what is written with out=.
bool updates(const OpEvent& event) {
    const size_t length = std::strlen(event.op->name);
    return event.op->op_class == OpClass::Other && length > 0 && event.op->name[length - 1] == '_';
}

bool sampled_step(int64_t step) { return step > 0 && (step & (step - 1)) == 0; }

}  // namespace

bool is_root(const OpEvent& event) {
    return event.input_count == 1 && std::strcmp(event.op->name, "aten::ones_like") == 0;
}

Verdict::Verdict(const Scanner& scanner, const StackFacts& stacks, const Lineage& lineage,
                 const ParameterHistory& parameters)
    : scanner_(scanner),
      stacks_(stacks),
      lineage_(lineage),
      parameters_(parameters),
      births_(scanner, stacks, ledger_, losses_, lineage, parameters) {}

bool Verdict::touches_held(const OpEvent& event) const noexcept {
    for (int32_t i = 0; i < event.input_count; ++i) {
        if (ledger_.may_hold(event.inputs[i].storage)) return true;
    }
    for (int32_t i = 0; i < event.output_count; ++i) {
        if (ledger_.may_hold(event.outputs[i].storage)) return true;
    }
    return false;
}

bool Verdict::interesting_by_class(const OpEvent& event) const noexcept {
    if (event.op->op_class != OpClass::HostRead) return true;
    // One value: a number the program reads.
    if (event.input_count != 1) return false;
    if (!scannable(event.inputs[0])) return met_bad_.load(std::memory_order_relaxed);
    return scanner_.range(event.inputs[0]).suspicious;
}

bool Verdict::knows(const TensorView& tensor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ledger_.find(tensor) != nullptr;
}

bool Verdict::is_sure_of(const TensorView& tensor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Kinds* known = ledger_.find(tensor);
    return known != nullptr && known->is_sure();
}

void Verdict::forget(const TensorView& tensor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ledger_.clear(tensor);
}

Ledger::Entry Verdict::births_in(const TensorView& tensor) {
    if (!ledger_.may_hold(tensor.storage)) return {};
    const std::lock_guard<std::mutex> lock(mutex_);
    const Kinds* known = ledger_.find(tensor);
    return known != nullptr ? *known : Kinds{};
}

void Verdict::adopt(const TensorView& tensor, const Ledger::Entry& births) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ledger_.set(tensor, births);
}

/// Which births the op read. With clean outputs only what the ledger knows matters; otherwise every operand is looked
/// at.
Verdict::Kinds Verdict::read_inputs(const OpEvent& event, const OpContext& context, bool outputs_bad) {
    Kinds before;
    int32_t first_use = -1;  // an operand that nothing wrote, and that the op has by now
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if ((input.flags & kUnavailable) != 0) {
            if (const auto it = unread_births_.find(input.storage); it != unread_births_.end())
                births_.add_kinds(before, it->second);
        }
        if (!scannable(input)) continue;
        const bool gone = written_by(event, input);
        if (gone && event.op->op_class == OpClass::Overwriting) continue;
        const Kinds* known = ledger_.find(input);
        const bool collective = event.op->op_class == OpClass::Collective;
        if (collective && !sends(event, input)) continue;
        // What is sent may be bad though no op is known to have made it so: the outputs are not there yet to show it.
        const bool sent = collective && ledger_.unwritten(input) != nullptr;
        const bool unwritten = gone && outputs_bad && known == nullptr && updates(event) && ledger_.unwritten(input);
        if (unwritten) first_use = i;
        if (known == nullptr && ((!outputs_bad && !sent) || gone)) continue;
        if (gone) {
            for (const Kind kind : kNonFiniteKinds) births_.used(known->of(kind), event, context);
            births_.add_kinds(before, *known);
            continue;
        }
        if (known != nullptr && before.muted == 0) before.muted = known->muted;
        if (known != nullptr && before.flushed == 0) before.flushed = known->flushed;
        if (!scanner_.range(input).suspicious) continue;  // a clean slice of a bad storage
        if (known == nullptr) {
            Kinds made = unseen_update(input);
            if (made.finite()) made = births_.external(input, event, context, scanner_.health(input));
            made.since = context.step;
            ledger_.set(input, made);
            births_.add_kinds(before, made);
            continue;
        }
        Kinds here;
        const KindSet kinds = scanner_.kinds(input);
        for (const Kind kind : kNonFiniteKinds) {
            if ((kinds & kind) == 0) continue;
            here.of(kind) = known->of(kind);
            births_.used(here.of(kind), event, context);
            if (is_parameter(input)) births_.becomes_initial_value(here.of(kind));
        }
        births_.add_kinds(before, here);
    }
    if (first_use >= 0 && before.finite()) {
        const TensorView& used = event.inputs[first_use];
        before = births_.external(used, event, context, scanner_.health(used));
    }
    return before;
}

void Verdict::op(const OpEvent& event, const OpContext& context, OutputSet bad_outputs, const ForwardRecord& forward,
                 BirthId* born, Outcome& outcome) {
    const std::lock_guard<std::mutex> lock(mutex_);
    *born = 0;
    if (bad_outputs.any()) met_bad_.store(true, std::memory_order_relaxed);
    last_step_ = std::max(last_step_, context.step);
    if (births_.full()) sweep();
    if (event.op->op_class == OpClass::Allocation) {
        for (int32_t i = 0; i < event.output_count; ++i) {
            if ((event.outputs[i].flags & kReturned) != 0 && scannable(event.outputs[i])) {
                ledger_.mark_unwritten(event.outputs[i], context.stack, context.seq);
            }
        }
        return;
    }
    if (wraps_memory(event)) ledger_.clear(event.inputs[0]);  // whatever was known of its address
    if (context.on_library_thread) {
        // A library's own thread: part of something that was called elsewhere. What it wrote is written, nothing is
        // born.
        for (int32_t i = 0; i < event.output_count; ++i) {
            if (scannable(event.outputs[i]) && ledger_.received(event.outputs[i]) == nullptr)
                ledger_.mark_written(event.outputs[i]);
        }
        return;
    }
    const Kinds before = read_inputs(event, context, bad_outputs.any());
    read_gradients(event, context);
    escapes_of(event, context, before, outcome);
    follow_check(event, context, before);
    if (event.op->op_class == OpClass::Collective) {
        receive(event, context, before);
        return;
    }
    write_outputs(event, context, bad_outputs, forward, before, born, outcome);
}

bool Verdict::is_certain(const OpEvent& event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return births_.certain(event) != 0;
}

bool Verdict::presume(const OpEvent& event, const OpContext& context, const ForwardRecord& forward, KindSet implied,
                      BirthId* born) {
    const std::lock_guard<std::mutex> lock(mutex_);
    *born = 0;
    const KindSet certain = births_.certain(event);
    const KindSet kinds = certain != 0 ? certain : implied;
    const Kinds before = certain != 0 ? Kinds{} : read_inputs(event, context, true);
    Kinds now;
    for (const Kind kind : kNonFiniteKinds) {
        if ((kinds & kind) == 0) continue;
        const BirthId id = births_.origin(kind, event, context, before, {}, forward);
        now.of(kind) = id;
        if (*born == 0 && !births_.intended(id)) *born = id;
        if (Birth* birth = births_.find(id); birth != nullptr && certain == 0 && birth->seq == context.seq) {
            birth->evidence.push_back(
                "its result was gone, too: what was computed from it is bad, by ops that only hand on what they read");
        }
    }
    for (int32_t i = 0; i < event.output_count && kinds != 0; ++i) unread_births_[event.outputs[i].storage] = now;
    return kinds != 0;
}

void Verdict::end_look_back() {
    const std::lock_guard<std::mutex> lock(mutex_);
    unread_births_.clear();
}

/// The largest magnitude of an operand of a collective: as it was written, because the collective may already have
/// changed it.
double Verdict::sent(const TensorView& operand) const {
    Lineage::Record written;
    const double remembered =
        lineage_.find(operand.storage, written) ? magnitude_value(written.largest, written.dtype) : 0;
    return remembered > 0 && std::isfinite(remembered) ? remembered : scanner_.health(operand).absmax;
}

/// Whose values output `index` of a collective will hold, where that does not depend on the values.
void Verdict::note_sender(const OpEvent& event, int32_t index, Ledger::Received& received) {
    const std::string_view op = plain_op_name(event.op->name);
    const bool from_one = op == "broadcast" || op == "recv";
    if (from_one && event.scalar_count > 0) received.from = static_cast<int64_t>(event.scalars[0]);
    const TensorView* own = nullptr;  // what this rank puts in
    int32_t count = 0;
    for (int32_t i = 0; i < event.input_count; ++i) {
        if (!sends(event, event.inputs[i])) continue;
        own = &event.inputs[i];
        ++count;
    }
    if (count != 1) return;
    if (op == "allgather") received.from = index;
    if (op == "_allgather_base" || op == "all_gather_into_tensor") received.share = own->numel;
}

/// A collective runs on by itself: its results are there when they are read.
void Verdict::receive(const OpEvent& event, const OpContext& context, const Kinds& before) {
    double sent = 0;
    const bool reduces = std::strstr(event.op->name, "reduce") != nullptr;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (reduces && scannable(input) && sends(event, input)) sent = std::max(sent, this->sent(input));
    }
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if (!scannable(output)) continue;
        Ledger::Received received{nullptr, event.op, context.stack, context.seq, context.step, sent};
        received.bad = before;
        note_sender(event, i, received);
        ledger_.mark_received(output, received);
    }
}

void Verdict::sweep() {
    std::set<BirthId> used;
    pending_.add_births(used);
    for (const StateWrite& write : state_writes_) used.insert(write.birth);
    births_.sweep(std::move(used));
}

void Verdict::write_outputs(const OpEvent& event, const OpContext& context, OutputSet bad_outputs,
                            const ForwardRecord& forward, const Kinds& before, BirthId* born, Outcome& outcome) {
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if ((output.flags & kUnavailable) != 0) {
            if (before.finite())
                unread_births_.erase(output.storage);
            else
                unread_births_[output.storage] = before;
        }
        if (is_view(event, output)) continue;
        if (!scannable(output)) {
            // New memory without values of a float type: what was known of its address is over.
            if ((output.flags & (kReturned | kLater | kUnavailable)) == kReturned) ledger_.clear(output);
            continue;
        }
        ledger_.mark_written(output);
        const bool written = (output.flags & kWritten) != 0;
        const bool bad = bad_outputs.contains(i);
        if (!bad) {
            if (!written || covers_storage(output)) ledger_.clear(output);
            track_zeros(event, context, i, before, forward);
            if (i < 16 && (context.near_overflow >> i & 1) != 0) track_headroom(event, context, i, forward);
            continue;
        }
        const Kinds* entry = ledger_.find(output);
        const Kinds old = entry != nullptr ? *entry : Kinds{};
        // A storage that inner ops of this op filled is known already; a returned one is new, whatever its address was
        // before.
        const bool keep = written || event.inner_ops_shown || std::strncmp(event.op->name, "aten::", 6) != 0;
        Kinds now = written && !covers_storage(output) ? old : Kinds{};
        now.since = context.step;
        const KindSet kinds = scanner_.kinds(output);
        for (const Kind kind : kNonFiniteKinds) {
            if ((kinds & kind) == 0) continue;
            const BirthId id = births_.origin(kind, event, context, before, keep ? old : Kinds{}, forward);
            now.of(kind) = id;
            now.unsure = static_cast<KindSet>(now.unsure & ~kind);
            if (!births_.intended(id) && (*born == 0 || id < *born)) *born = id;
            Birth* birth = births_.find(id);
            if (birth != nullptr && shrinks(event)) birth->through_root = true;
        }
        ledger_.set(output, now);
        follow_gradients(event, context, output, now);
        births_.leave_notes(now, output);
        if (!written) continue;
        take_gradients(output, outcome);
        if (is_parameter(output)) {
            escape(now, EscapeInto::Parameter, output.impl, context, Severity::Error, outcome);
        } else if (traits_of(event).form == Form::BatchNorm) {
            escape(now, EscapeInto::Buffer, output.impl, context, Severity::Error, outcome);
        } else if (context.node == nullptr && !is_gradient(output.storage)) {
            note_state_write(now, output, context);
        }
    }
}

/// State of the program may hold it now; its name, asked for later, shows which.
void Verdict::note_state_write(const Kinds& kinds, const TensorView& tensor, const OpContext& context) {
    if (context.ignored || state_writes_.size() >= kMaxStateWrites) return;
    for (const Kind kind : kNonFiniteKinds) {
        const Birth* birth = births_.find(kinds.of(kind));
        if (birth == nullptr || birth->intended || birth->ignored || birth->escaped) continue;
        state_writes_.push_back({birth->id, tensor.impl, tensor.storage, context.step, context.seq, context.stack});
    }
}

/// Output `index` is finite. Follows zeros that should not be: of overflows that were divided by, of values too small
/// for the type.
void Verdict::track_zeros(const OpEvent& event, const OpContext& context, int32_t index, const Kinds& before,
                          const ForwardRecord& forward) {
    const TensorView& output = event.outputs[index];
    Kinds now;
    if (const Kinds* entry = ledger_.find(output)) now = *entry;
    const BirthId muted = now.muted;
    const BirthId flushed = now.flushed;
    for (const Kind kind : {kPosInf, kNegInf}) {
        const Birth* birth = births_.find(before.of(kind));
        if (birth == nullptr || birth->intended || birth->escaped || now.muted != 0) continue;
        if (mutes(event, *birth) && scanner_.measures(output) && scanner_.health(output).zero > 0)
            now.muted = birth->id;
    }
    if (before.muted != 0) {
        if (multiplies(event)) {
            const bool gradient = context.node != nullptr || is_gradient(output.storage);
            postpone(before.muted,
                     is_parameter(output) ? EscapeInto::Parameter
                     : gradient           ? EscapeInto::Gradient
                                          : EscapeInto::Loss,
                     output.impl, context, PendingReason::Muted);
        } else if (hands_zeros_on(event) && scanner_.health(output).zero > 0) {
            now.muted = before.muted;
        }
    }
    if (before.flushed != 0) {
        const Health health = scanner_.health(output);
        if (2 * (health.zero + health.subnormal) >= health.elements) now.flushed = before.flushed;
    } else if (context.underflow) {
        track_flushed(event, context, index, forward, now);
    }
    const bool parameter = is_parameter(output);
    const bool updated = context.underflow && context.node == nullptr && sampled_step(context.step);
    if (updated && (parameter || averages(event, context, output))) {
        if (const std::optional<std::string> evidence = lost_updates(event, index);
            evidence && ++lost_[output.impl] == 2) {
            postpone(births_.flushed(event, index, context, forward, Mechanism::PREC, *evidence),
                     parameter ? EscapeInto::Parameter : EscapeInto::Buffer, output.impl, context,
                     PendingReason::Flushed);
        }
    }
    if (now.muted != muted || now.flushed != flushed) ledger_.set(output, now);
}

/// `output`, no parameter itself, is an average that the program keeps of something a parameter is or was: by hand, and
/// not the optimizer's moments, which follow gradients.
bool Verdict::averages(const OpEvent& event, const OpContext& context, const TensorView& output) const {
    if ((output.flags & kWritten) == 0 || !context.on_state || context.in_optimizer || is_gradient(output.storage))
        return false;
    const auto follows = [&](const TensorView& input) {
        const uint16_t flags = lineage_.flags(input.storage);
        return input.storage != output.storage &&
               (is_parameter(input) || ((flags & Lineage::kState) != 0 && (flags & Lineage::kGradient) == 0));
    };
    return std::any_of(event.inputs, event.inputs + event.input_count, follows);
}

/// Output `index` is finite: was it flushed by this op? A gradient that was is reported at once, as it reaches its
/// parameter; what a forward op flushes only where it does so in another step, too.
void Verdict::track_flushed(const OpEvent& event, const OpContext& context, int32_t index, const ForwardRecord& forward,
                            Kinds& now) {
    constexpr size_t kMaxSites = 256;
    const TensorView& output = event.outputs[index];
    const bool backward = context.node != nullptr;
    const bool gradient = !backward && (output.flags & kWritten) != 0 && is_gradient(output.storage);
    const bool result = !backward && context.touched && event.grad_enabled && !context.in_optimizer;
    if (!backward && !gradient && (!result || output.numel < 2)) return;
    const std::optional<std::string> evidence = flushed_share(event, index, scanner_, lineage_);
    if (!evidence) return;
    const Health health = scanner_.health(output);
    const bool subnormal = 2 * health.zero < health.elements;
    if (result && health.zero != health.elements) return;
    BirthId id = 0;
    if (!backward || subnormal) {
        const OpSite site{event.op, backward ? forward.stack : context.stack};
        const auto seen = flushes_.find(site);
        if (seen == flushes_.end()) {
            if (flushes_.size() >= kMaxSites) return;
            id = births_.flushed(event, index, context, forward, Mechanism::UDF, *evidence);
            // What becomes of these zeros in this step goes back to them, and is no birth of its own.
            births_.find(id)->ignored = true;
            flushes_[site] = static_cast<int64_t>(id);
        } else if (Birth* first = births_.find(static_cast<BirthId>(seen->second)); first != nullptr) {
            id = first->id;
            if (first->step != context.step && !context.ignored) first->ignored = false;
        }
    }
    if (id == 0) id = births_.flushed(event, index, context, forward, Mechanism::UDF, *evidence);
    if (gradient) {
        postpone(id, EscapeInto::Gradient, output.impl, context, PendingReason::Flushed);
    } else {
        now.flushed = id;
    }
}

/// Output `index` is finite and close to the largest number of its 16- or 8-bit type. Once may be a batch out of line:
/// values that stay there are reported.
void Verdict::track_headroom(const OpEvent& event, const OpContext& context, int32_t index,
                             const ForwardRecord& forward) {
    constexpr size_t kMaxSites = 256;
    if (context.ignored) return;
    const auto known = near_overflows_.find({event.op, context.stack});
    if (known != near_overflows_.end() && known->second.reported) return;
    if (known == near_overflows_.end() && near_overflows_.size() >= kMaxSites) return;
    Mechanism mechanism = Mechanism::PREC;
    std::optional<std::string> evidence = saturated(event, index, context.seq, lineage_);
    if (!evidence && context.touched) {
        mechanism = Mechanism::OVF;
        evidence = close_to_largest(event, index, context.seq, context.headroom, scanner_, lineage_);
    }
    if (!evidence) return;
    NearOverflow& site = near_overflows_[{event.op, context.stack}];
    if (site.last_step != context.step) ++site.steps;
    site.last_step = context.step;
    ++site.looks;
    const bool unstepped = site.steps == 1 && context.step == 0 && site.looks == kSteadyLooks;
    if (site.steps < kSteadySteps && !unstepped) return;
    site.reported = site.steps >= kSteadySteps;
    const BirthId id = births_.near_overflow(event, index, context, forward, mechanism, *evidence);
    births_.find(id)->evidence.push_back(unstepped
                                             ? "so it was " + std::to_string(site.looks) + " times in this run"
                                             : "so it was in " + std::to_string(site.steps) + " steps of this run");
    postpone(id, EscapeInto::Output, event.outputs[index].impl, context,
             unstepped ? PendingReason::NearLimitUnstepped : PendingReason::NearLimit);
}

}  // namespace numsan
