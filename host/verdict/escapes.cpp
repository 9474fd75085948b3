#include "host/verdict/escapes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "host/cause/magnitude_history.h"
#include "host/cause/value_chain.h"

namespace numsan {
/// What makes two births the same to a reader. An overflow is none the less that for having diverged to it meanwhile.
std::string Escapes::place_of(const Birth& birth) const {
    const bool diverged = birth.mechanism == Mechanism::HYPER;
    return birth.op + "|" + std::to_string(stacks_.place(birth.has_forward ? birth.forward_stack : birth.stack)) + "|" +
           birth.node + "|" + to_string(diverged ? Mechanism::OVF : birth.mechanism) +
           (birth.made_at ? "|" + birth.made_at->file + ":" + std::to_string(birth.made_at->line) : "");
}

/// True: the first finding there, as far as is remembered.
bool Escapes::is_new(const std::string& place) {
    if (!reported_places_.insert(place).second) return false;
    places_in_order_.push_back(place);
    if (places_in_order_.size() > kMostPlaces) {
        reported_places_.erase(places_in_order_.front());
        places_in_order_.pop_front();
        ++forgotten_;
    }
    // What earlier findings have reached gives way to what this one will reach.
    if (contaminated_.size() >= PendingStore::kMost) {
        std::vector<BirthId> births;
        for (const Reach& reach : contaminated_) births.push_back(reach.birth);
        const auto middle = births.begin() + static_cast<std::ptrdiff_t>(births.size() / 2);
        std::nth_element(births.begin(), middle, births.end());
        std::erase_if(contaminated_, [&](const Reach& reach) { return reach.birth <= *middle; });
    }
    return true;
}

void Escapes::postpone(BirthId id, EscapeInto into, const void* impl, const OpContext& context, PendingReason reason) {
    pending_.postpone(births_.find(id), into, impl, context, reason);
}

void Escapes::postpone(const BirthKinds& kinds, EscapeInto into, const void* impl, const OpContext& context,
                       PendingReason reason) {
    for (const Kind kind : kNonFiniteKinds) {
        if (kinds.of(kind) != 0) postpone(kinds.of(kind), into, impl, context, reason);
    }
}

void Escapes::escape(const BirthKinds& kinds, EscapeInto into, const void* impl, const OpContext& context,
                     Severity severity, Outcome& outcome) {
    for (const Kind kind : kNonFiniteKinds) {
        if (Birth* birth = births_.find(kinds.of(kind)); birth != nullptr)
            escape(*birth, into, impl, context, severity, outcome);
    }
}

void Escapes::escape(Birth& birth, EscapeInto into, const void* impl, const OpContext& context, Severity severity,
                     Outcome& outcome) {
    if (context.ignored || birth.ignored || (birth.intended && into != EscapeInto::Loss)) return;
    report_gradient_of(birth, severity, outcome);
    report(birth,
           {.birth = birth.id,
            .into = into,
            .impl = impl,
            .step = context.step,
            .seq = context.seq,
            .stack = context.stack},
           severity, outcome);
}

void Escapes::send(const BirthKinds& kinds, const OpEvent& event, const OpContext& context, Outcome& outcome) {
    if (event.communicator == nullptr) return;
    for (const Kind kind : kNonFiniteKinds) {
        Birth* birth = births_.find(kinds.of(kind));
        constexpr size_t kMostBefore = 4;
        if (birth == nullptr || birth->ignored || birth->intended) continue;
        const size_t known = birth->escaped ? birth->sent : birth->sent_before.size();
        if (known >= (birth->escaped ? kMostSent : kMostBefore)) continue;
        CollectiveFact where =
            sent_fact({event.op, event.communicator, context.collective, route_of(event), context.step, context.seq});
        if (!birth->escaped) {
            birth->sent_before.push_back(std::move(where));
            continue;
        }
        ++birth->sent;
        outcome.sent.push_back({birth->id, std::move(where)});
    }
}

/// Of a value that arrived: an op made one of its kind before, in the same step or one that has reached a parameter.
/// What lists and arrays hold is not followed: the program may have read that one and given it back. 0: there is none.
BirthId Escapes::repeated_by(const Birth& birth) const {
    if (birth.mechanism != Mechanism::DATA || birth.holder == nullptr || birth.phase == Phase::Comm) return 0;
    const auto may_be = [&](const Birth& earlier) {
        const bool kind = birth.kind == kNaN ? earlier.kind != 0 : earlier.kind == birth.kind;
        return kind && earlier.escaped && !earlier.intended && earlier.holder == nullptr && earlier.id < birth.id;
    };
    if (const Birth* poisoned = births_.find(births_.poisoned); poisoned != nullptr && may_be(*poisoned))
        return poisoned->id;
    int left = kMostRepeats;  // those of the step are the last
    for (auto at = births_.all().lower_bound(birth.id); at != births_.all().begin() && left > 0; --left) {
        const Birth& earlier = (--at)->second;
        if (earlier.step == birth.step && may_be(earlier)) return earlier.id;
    }
    return 0;
}

void Escapes::report(Birth& birth, const PendingEscape escape, Severity severity, Outcome& outcome) {
    if (!birth.escaped) birth.repeats = repeated_by(birth);
    if (escape.into == EscapeInto::Parameter && !birth.intended)
        births_.poisoned = birth.repeats != 0 ? birth.repeats : birth.id;
    // One finding, wherever a diverged run overflows next.
    const Birth* diverged = birth.mechanism == Mechanism::HYPER ? births_.divergence_before(birth.id) : nullptr;
    if (is_state(escape.into))
        contaminate(diverged != nullptr ? *diverged : birth, escape.into, escape.impl, escape.step, outcome);
    if (birth.escaped) return;
    birth.escaped = true;
    if (diverged != nullptr) return;
    // Zeros end with the update that takes them up: what overflows later does not come from them.
    if (birth.mechanism == Mechanism::HYPER && !escape.muted) births_.diverged = birth.id;
    if (!birth.intended) ++escaped_;
    birth.features.into = escape.into;
    birth.features.scaler = scaler_seen_;
    birth.features.loss_known = loss_seq_ > birth.forward_seq;
    const bool came_back = escape.into == EscapeInto::Gradient || escape.into == EscapeInto::Parameter;
    if (birth.kind != 0 && birth.phase == Phase::Forward && birth.features.loss_known && came_back &&
        births_.bad_loss == 0) {
        birth.features.hidden = true;
    }
    if (birth.features.loss_known && birth.forward_seq > loss_parameter_read_) birth.features.after_parameters = true;
    std::string place = place_of(birth);
    if (birth.repeats != 0) place += "|repeats";  // a finding of its own at that line is still the first there
    const bool again = !is_new(place);
    reported_any_.store(true, std::memory_order_relaxed);
    if (!again) birth.history = magnitude_history(birth, lineage_, history_);
    if (!again && chains_++ < kMostChains)
        birth.chain = value_chain(birth, lineage_, escape.seq, history_, stacks_.source());
    for (CollectiveFact& where : birth.sent_before) outcome.sent.push_back({birth.id, std::move(where)});
    birth.sent_before.clear();
    EscapedBirth made;
    made.birth = birth;
    made.severity = severity;
    made.into = escape.into;
    made.impl = escape.impl;
    made.step = escape.step;
    made.seq = escape.seq;
    made.stack = escape.stack;
    made.again = again;
    made.place = std::move(place);
    if (!again) made.collectives = begun_before(birth.seq);
    if (!made.again && birth.kind != 0) ++bad_places_;
    outcome.escaped.push_back(std::move(made));
}

/// Where nothing knows of collectives there are none.
std::optional<std::vector<CollectiveLog::Begun>> Escapes::begun_before(OpSeq seq) const {
    return collectives_ != nullptr ? collectives_->before(seq) : std::vector<CollectiveLog::Begun>{};
}

Birth Escapes::with_history(const Birth& birth) const {
    Birth made = birth;
    made.history = magnitude_history(birth, lineage_, history_);
    return made;
}

void Escapes::report_absorbed(const Birth& birth, std::string place, int64_t times, Outcome& outcome) const {
    EscapedBirth made;
    made.birth = birth;
    made.birth.features.scaler = scaler_seen_;
    made.birth.features.loss_known = loss_seq_ > birth.forward_seq;
    if (made.birth.features.loss_known && birth.forward_seq > loss_parameter_read_)
        made.birth.features.after_parameters = true;
    made.severity = Severity::Info;
    made.step = birth.last.fate == Fate::Unread ? birth.step : birth.last.step;
    made.seq = birth.last.fate == Fate::Unread ? birth.seq : birth.last.seq;
    made.place = std::move(place);
    made.times = times;
    made.collectives = begun_before(birth.seq);
    outcome.escaped.push_back(std::move(made));
}

void Escapes::report_gradient_of(Birth& birth, Severity severity, Outcome& outcome) {
    if (birth.escaped) return;
    const PendingStore::List& gradients = pending_.of(PendingReason::Gradient);
    const auto pending = std::find_if(gradients.begin(), gradients.end(),
                                      [&](const PendingEscape& p) { return p.birth == birth.id && !p.replaced; });
    if (pending != gradients.end()) report(birth, *pending, severity, outcome);
}

void Escapes::contaminate(const Birth& birth, EscapeInto into, const void* impl, int64_t step, Outcome& outcome) {
    if (birth.kind == 0 || contaminated_.size() >= PendingStore::kMost) return;
    if (!contaminated_.insert({birth.id, into, impl}).second) return;
    outcome.contaminated.push_back({birth.id, into, impl, step});
}

void Escapes::report_all(const PendingStore::List& escapes, Severity severity, Outcome& outcome) {
    for (const PendingEscape& p : escapes) {
        Birth* birth = births_.find(p.birth);
        if (birth != nullptr && !birth->scaler) report(*birth, p, severity, outcome);
    }
}

}  // namespace numsan
