#include "host/verdict/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "host/base/thresholds.h"
#include "host/birth/zeros.h"
#include "host/cause/measure.h"
#include "host/ops/op_traits.h"
#include "host/ops/operands.h"
#include "host/track/headroom.h"
#include "host/track/layer_input.h"

namespace numsan {
namespace {

/// Kinds of which no birth is known.
KindSet missing(KindSet kinds, const BirthKinds& known) {
    for (const Kind kind : kNonFiniteKinds) {
        if (known.of(kind) != 0) kinds = static_cast<KindSet>(kinds & ~kind);
    }
    return kinds;
}

/// add_(), lerp_(): computes what it writes from what is there, unlike copy_() and what is written with out=.
bool updates(const OpEvent& event) {
    const size_t length = std::strlen(event.op->name);
    return event.op->op_class == OpClass::Other && length > 0 && event.op->name[length - 1] == '_';
}

}  // namespace

Verdict::Verdict(const Scanner& scanner, const StackFacts& stacks, const Lineage& lineage,
                 const ParameterHistory& parameters)
    : scanner_(scanner),
      stacks_(stacks),
      lineage_(lineage),
      store_(stacks.source()),
      phase_(stacks, lineage),
      facts_(scanner, losses_, lineage, parameters),
      exchanged_(scanner, store_),
      external_(scanner, stacks, ledger_, store_, facts_, phase_),
      births_(scanner, stacks, store_, phase_, facts_, exchanged_),
      reported_(scanner, ledger_, store_),
      bits_(ledger_, store_),
      finite_(scanner, lineage, ledger_, store_, births_, pending_),
      unread_(scanner, ledger_, store_),
      collectives_(scanner, lineage, ledger_),
      escapes_(stacks, lineage, store_, pending_),
      loss_start_(scanner, stacks, lineage, ledger_, losses_, store_, external_, escapes_),
      gradients_(scanner, parameters, ledger_, store_, external_, pending_, escapes_),
      scalers_(scanner, stacks, lineage, ledger_, store_, pending_, escapes_),
      checks_(lineage, ledger_, store_, pending_, escapes_),
      kept_(ledger_, store_, escapes_) {}

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

/// Which births the op read. With clean outputs only what the ledger knows matters; otherwise every operand is looked
/// at.
BirthKinds Verdict::read_inputs(const OpEvent& event, const OpContext& context, bool outputs_bad) {
    BirthKinds before;
    int32_t first_use = -1;  // an operand that nothing wrote, and that the op has by now
    const WrittenOperands written(event);
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if ((input.flags & kUnavailable) != 0) {
            if (const auto it = unavailable_.find(input.storage); it != unavailable_.end())
                store_.add_kinds(before, it->second);
        }
        if (!scannable(input)) continue;
        const bool gone = written.contain(input);
        if (gone && event.op->op_class == OpClass::Overwriting) continue;
        const BirthKinds* known = ledger_.find(input);
        const bool collective = event.op->op_class == OpClass::Collective;
        if (collective && !sends(event, input)) continue;
        // What is sent may be bad though no op is known to have made it so: the outputs are not there yet to show it.
        const bool sent = collective && ledger_.unwritten(input) != nullptr;
        const bool unwritten = gone && outputs_bad && known == nullptr && updates(event) && ledger_.unwritten(input);
        if (unwritten) first_use = i;
        if (known == nullptr && ((!outputs_bad && !sent) || gone)) continue;
        if (gone) {
            for (const Kind kind : kNonFiniteKinds) births_.used(known->of(kind), event, context);
            store_.add_kinds(before, *known);
            continue;
        }
        if (known != nullptr && before.muted == 0) before.muted = known->muted;
        if (known != nullptr && before.flushed == 0) before.flushed = known->flushed;
        if (!scanner_.range(input).suspicious) continue;  // a clean slice of a bad storage
        if (known == nullptr) {
            BirthKinds made = gradients_.unseen_update(input);
            if (made.finite()) made = external_.made(input, event, context, scanner_.health(input));
            made.since = context.step;
            ledger_.set(input, made);
            store_.add_kinds(before, made);
            continue;
        }
        BirthKinds here;
        const KindSet kinds = scanner_.kinds(input);
        if (const KindSet more = missing(kinds, *known); more != 0) {
            BirthKinds all = *known;
            store_.add_kinds(all, external_.received(more, input, event, context));
            if (missing(more, all) != more) ledger_.set(input, all);
            known = ledger_.find(input);
        }
        for (const Kind kind : kNonFiniteKinds) {
            if ((kinds & kind) == 0) continue;
            here.of(kind) = known->of(kind);
            births_.used(here.of(kind), event, context);
            if (is_parameter(input) && !is_layer_input(event, context, i)) births_.becomes_initial_value(here.of(kind));
        }
        store_.add_kinds(before, here);
    }
    if (first_use >= 0 && before.finite()) {
        const TensorView& used = event.inputs[first_use];
        before = external_.made(used, event, context, scanner_.health(used));
    }
    return before;
}

void Verdict::op(const OpEvent& event, const OpContext& context, OutputSet bad_outputs, const ForwardRecord& forward,
                 BirthId* born, Outcome& outcome) {
    const std::optional<ValueChecks::Question> asked = checks_.follows() ? look_at_check(event, context) : std::nullopt;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (asked) checks_.follow(*asked, event, context, outcome);
    const BirthId newest = shows_births_ ? store_.last() : 0;
    judge(event, context, bad_outputs, forward, born, outcome);
    for (BirthId id = newest + 1; shows_births_ && id <= store_.last(); ++id) {
        if (store_.find(id) != nullptr && !store_.intended(id)) outcome.born.push_back(id);
    }
}

void Verdict::judge(const OpEvent& event, const OpContext& context, OutputSet bad_outputs, const ForwardRecord& forward,
                    BirthId* born, Outcome& outcome) {
    *born = 0;
    if (bad_outputs.any()) met_bad_.store(true, std::memory_order_relaxed);
    begin_step(context);
    if (store_.full()) sweep();
    if (event.op->op_class == OpClass::Allocation) {
        for (int32_t i = 0; i < event.output_count; ++i) {
            const TensorView& output = event.outputs[i];
            if ((output.flags & kReturned) == 0) continue;
            if (scannable(output))
                ledger_.mark_unwritten(output, context.stack, context.seq);
            else if (output.integer != IntegerType::None)
                ledger_.clear(output);  // whatever was known of its address
        }
        return;
    }
    if (wraps_memory(event)) ledger_.clear(event.inputs[0]);  // whatever was known of its address
    if (context.on_library_thread) {
        // A library's own thread: part of something that was called elsewhere. What it wrote is written, nothing is
        // born.
        if (absorbed_) absorbed_->read(event, context);
        for (int32_t i = 0; i < event.output_count; ++i) {
            if (scannable(event.outputs[i]) && ledger_.received(event.outputs[i]) == nullptr)
                ledger_.mark_written(event.outputs[i]);
        }
        return;
    }
    if (event.op->op_class == OpClass::Region) {
        for (const auto& [from, to] : external_.explain_region(event, context)) pending_.replace(from, to);
        return;
    }
    const BirthKinds before = read_inputs(event, context, bad_outputs.any());
    gradients_.read(event, context);
    escapes_of(event, context, before, outcome);
    if (!before.finite()) checks_.begin(event, context);
    if (event.op->op_class == OpClass::Collective) {
        collectives_.receive(event, context, before);
        return;
    }
    if (absorbed_) absorbed_->begin(event);
    write_outputs(event, context, bad_outputs, forward, before, born, outcome);
    if (absorbed_) absorbed_->end(event, context);
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
    const BirthKinds before = certain != 0 ? BirthKinds{} : read_inputs(event, context, true);
    BirthKinds now;
    for (const Kind kind : kNonFiniteKinds) {
        if ((kinds & kind) == 0) continue;
        const auto [id, intended] = births_.origin(kind, event, context, before, {}, forward);
        now.of(kind) = id;
        if (*born == 0 && !intended) *born = id;
        if (Birth* birth = store_.find(id); birth != nullptr && certain == 0 && birth->seq == context.seq) {
            birth->evidence.push_back(
                "its result was gone, too: what was computed from it is bad, by ops that only hand on what they read");
        }
    }
    for (int32_t i = 0; i < event.output_count && kinds != 0; ++i) unavailable_[event.outputs[i].storage] = now;
    return kinds != 0;
}

void Verdict::end_look_back() {
    const std::lock_guard<std::mutex> lock(mutex_);
    unavailable_.clear();
}

void Verdict::sweep() {
    std::set<BirthId> used;
    pending_.add_births(used);
    kept_.add_births(used);
    store_.sweep(std::move(used), ledger_, [this](const Birth& birth) {
        if (absorbed_) absorbed_->drop(birth);
    });
}

void Verdict::write_outputs(const OpEvent& event, const OpContext& context, OutputSet bad_outputs,
                            const ForwardRecord& forward, const BirthKinds& before, BirthId* born, Outcome& outcome) {
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if ((output.flags & kUnavailable) != 0) {
            if (before.finite())
                unavailable_.erase(output.storage);
            else
                unavailable_[output.storage] = before;
        }
        if (is_view(event, output)) continue;
        if (output.integer != IntegerType::None || scannable(output)) ledger_.mark_written(output);
        if (!scannable(output)) {
            bits_.write(event, output, context.step);
            continue;
        }
        const bool written = (output.flags & kWritten) != 0;
        const bool bad = bad_outputs.contains(i);
        if (!bad) {
            if (!written || covers_storage(output)) ledger_.clear(output);
            finite_.look_at_zeros(event, context, i, before, forward);
            if (i < 16 && (context.near_overflow >> i & 1) != 0) finite_.look_at_headroom(event, context, i, forward);
            continue;
        }
        const BirthKinds* entry = ledger_.find(output);
        const BirthKinds old = entry != nullptr ? *entry : BirthKinds{};
        // A storage that inner ops of this op filled is known already; a returned one is new, whatever its address was
        // before.
        const bool keep = written || event.inner_ops_shown || std::strncmp(event.op->name, "aten::", 6) != 0;
        BirthKinds now = written && !covers_storage(output) ? old : BirthKinds{};
        now.since = context.step;
        const KindSet kinds = scanner_.kinds(output);
        for (const Kind kind : kNonFiniteKinds) {
            if ((kinds & kind) == 0) continue;
            const auto [id, intended] =
                births_.origin(kind, event, context, before, keep ? old : BirthKinds{}, forward);
            now.of(kind) = id;
            now.unsure = static_cast<KindSet>(now.unsure & ~kind);
            if (!intended && (*born == 0 || id < *born)) *born = id;
        }
        ledger_.set(output, now);
        if (gradients_.any_wait()) gradients_.follow(event, context, output, now);
        exchanged_.leave_notes(now, output);
        if (written) wrote_in_place(event, context, output, now, outcome);
    }
}

void Verdict::wrote_in_place(const OpEvent& event, const OpContext& context, const TensorView& output,
                             const BirthKinds& now, Outcome& outcome) {
    gradients_.take(output, outcome);
    if (is_parameter(output)) {
        escapes_.escape(now, EscapeInto::Parameter, output.impl, context, Severity::Error, outcome);
    } else if (traits_of(event).form == Form::BatchNorm) {
        escapes_.escape(now, EscapeInto::Buffer, output.impl, context, Severity::Error, outcome);
    } else if (context.node == nullptr && (lineage_.flags(output.storage) & Lineage::kGradient) == 0) {
        kept_.note_write(now, output, context);
    }
}

bool Verdict::repeat(const OpEvent& event, const OpContext& context, OutputSet bad_outputs, const Range* ranges,
                     int32_t range_count, BirthId* born, Outcome& outcome) {
    const OpClass cls = event.op->op_class;
    if (!escapes_.reported_any() || !bad_outputs.any() || (cls != OpClass::Other && cls != OpClass::Preserving) ||
        event.on_device || context.on_library_thread || context.unavailable > 0 || is_root(event) ||
        adopts_storage(event) || checks_.follows())
        return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    begin_step(context);
    if (gradients_.may_concern(event)) return false;
    const BirthKinds births = reported_.handed_on(event, context, bad_outputs, ranges, range_count);
    if (births.finite()) return false;
    *born = 0;
    for (int32_t i = 0; i < event.output_count; ++i) {
        const BirthKinds now = reported_.write(event, i, births, context.step);
        if (now.finite()) continue;
        for (const Kind kind : kNonFiniteKinds) {
            if (now.of(kind) == births.of(kind) && now.of(kind) != 0 && (*born == 0 || now.of(kind) < *born))
                *born = now.of(kind);
        }
        exchanged_.leave_notes(now, event.outputs[i]);
        if ((event.outputs[i].flags & kWritten) != 0) wrote_in_place(event, context, event.outputs[i], now, outcome);
    }
    return true;
}

void Verdict::escapes_of(const OpEvent& event, const OpContext& context, const BirthKinds& before, Outcome& outcome) {
    const OpClass cls = event.op->op_class;
    if (cls == OpClass::Collective) {
        if (!before.finite())
            escapes_.escape(before, EscapeInto::Collective, nullptr, context, Severity::Error, outcome);
        escapes_.send(is_origin(event, route_of(event)) ? bad_operands(event) : before, event, context, outcome);
    } else if (cls == OpClass::HostRead) {
        BirthKinds read = before;
        if (read.finite() && event.input_count == 1 && scannable(event.inputs[0]) &&
            scanner_.range(event.inputs[0]).suspicious) {
            read = external_.made(event.inputs[0], event, context, scanner_.health(event.inputs[0]));
            read.since = context.step;
            ledger_.set(event.inputs[0], read);
        }
        escapes_.postpone(read, EscapeInto::Host, nullptr, context, PendingReason::HostRead);
        if (event.input_count == 1 && !scannable(event.inputs[0])) checks_.answer(event, context);
    } else if (cls == OpClass::LossScale) {
        scalers_.op(event, context.step, outcome);
    } else if (is_root(event) && stacks_.is_loss(context.stack)) {
        loss_start_.begin(event, context, before, outcome);
    }
}

void Verdict::op_failed(const OpEvent& event, const OpContext& context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        const BirthKinds* known = ledger_.find(input);
        if (known == nullptr || known->finite() || !scannable(input) || !scanner_.range(input).suspicious) continue;
        escapes_.postpone(*known, EscapeInto::Host, nullptr, context, PendingReason::HostRead);
        const std::string fact = "`" + std::string(event.op->name) + "` read it and failed";
        for (const Kind kind : kNonFiniteKinds) {
            Birth* birth = store_.find(known->of(kind));
            if (birth == nullptr) continue;
            std::vector<std::string>& evidence = birth->evidence;
            if (std::find(evidence.begin(), evidence.end(), fact) == evidence.end()) evidence.push_back(fact);
        }
    }
}

void Verdict::unread(const OpEvent& event, const OpContext& context, OutputSet outputs, Outcome& outcome) {
    const auto may_hold = [&](const TensorView& t) { return ledger_.may_hold(t.storage); };
    const bool writes_infinity = event.op->op_class == OpClass::Constant && event.infinite_scalar;
    if (!writes_infinity && std::none_of(event.inputs, event.inputs + event.input_count, may_hold) &&
        std::none_of(event.outputs, event.outputs + event.output_count, may_hold))
        return;
    const std::lock_guard<std::mutex> lock(mutex_);
    gradients_.read(event, context);
    if (absorbed_) absorbed_->read(event, context);
    const bool lists = is_over_lists(event);
    BirthKinds kinds = lists ? BirthKinds{} : unread_.handed_on(event, 0);
    for (const Kind kind : {kPosInf, kNegInf}) {
        if (!writes_infinity || kinds.of(kind) != 0) continue;
        if (store_.full()) sweep();
        kinds.of(kind) = births_.origin(kind, event, context, {}, {}, {}).id;
    }
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if (!outputs.contains(i) || is_view(event, output) || scannable(output)) continue;
        ledger_.mark_written(output);
        if (lists) kinds = unread_.handed_on(event, i);
        kinds.since = context.step;
        BirthKinds now = kinds;
        if ((output.flags & kWritten) != 0 && !covers_storage(output))
            store_.add_kinds(now, unread_.left_beside(event, i));
        ledger_.set(output, now);
        if (gradients_.any_wait()) gradients_.follow(event, context, output, now);
        if ((output.flags & kWritten) != 0 && kinds.is_sure()) gradients_.take(output, outcome);
    }
}

}  // namespace numsan
