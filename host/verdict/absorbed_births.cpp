#include "host/verdict/absorbed_births.h"

#include <algorithm>
#include <cctype>

#include "host/ops/op_traits.h"
#include "host/ops/operands.h"

namespace numsan {
namespace {

bool holds(const Ledger::Entry* entry, BirthId id) {
    return entry != nullptr &&
           std::find(std::begin(entry->birth), std::end(entry->birth), id) != std::end(entry->birth);
}

bool writes_all(const TensorView& output) { return (output.flags & kWritten) != 0 && covers_storage(output); }

/// Some elements are left out of the result, or others take their places.
bool leaves_out(const OpEvent& event) {
    const OpTraits& op = traits_of(event);
    return op.is({Form::Move, Form::Choose, Form::Replace, Form::FillPlaces});
}

/// The formula of a derivative of torch's, which makes the value and masks it by itself. Names of its nodes end with
/// a number: "SqrtBackward0".
bool is_within_derivative(const Birth& birth, const OpContext& context) {
    return context.node != nullptr && birth.node_sequence != NodeSeq::None &&
           birth.node_sequence == context.node_sequence && birth.node == context.node &&
           std::isdigit(static_cast<unsigned char>(birth.node.back())) != 0;
}

}  // namespace

void AbsorbedBirths::collect_operands(const OpEvent& event) {
    read_.clear();
    const WrittenOperands written(event);
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (!scannable(input)) continue;
        const Ledger::Entry* known = ledger_.find(input);
        if (known == nullptr || known->finite()) continue;
        const bool gone = written.contain(input);
        if (gone && event.op->op_class == OpClass::Overwriting) continue;
        if (!gone && !scanner_.range(input).suspicious) continue;  // a clean slice of a bad storage
        const KindSet kinds = gone ? KindSet(kNaN | kAnyInf) : scanner_.kinds(input);
        for (const Kind kind : kNonFiniteKinds) {
            if ((kinds & kind) != 0 && known->of(kind) != 0) read_.insert(known->of(kind));
        }
    }
}

void AbsorbedBirths::begin(const OpEvent& event) {
    collect_operands(event);
    overwritten_.clear();
    for (int32_t i = 0; i < event.output_count; ++i) {
        const Ledger::Entry* known = writes_all(event.outputs[i]) ? ledger_.find(event.outputs[i]) : nullptr;
        for (const Kind kind : kNonFiniteKinds) {
            if (known != nullptr && known->of(kind) != 0) overwritten_.emplace_back(i, known->of(kind));
        }
    }
}

void AbsorbedBirths::end(const OpEvent& event, const OpContext& context) {
    for (const auto& [output, id] : overwritten_) {
        if (!holds(ledger_.find(event.outputs[output]), id)) meet(id, Fate::Overwritten, event, context);
    }
    for (const BirthId id : read_) {
        const Birth* birth = births_.find(id);
        if (birth == nullptr) continue;
        const Fate fate = fate_of(*birth, event);
        const bool overwrites = birth->last.fate == Fate::Overwritten && birth->last.seq == context.seq;
        if (!overwrites || fate != Fate::Finite) meet(id, fate, event, context);
    }
}

void AbsorbedBirths::read(const OpEvent& event, const OpContext& context) {
    collect_operands(event);
    for (const BirthId id : read_) meet(id, Fate::ReadLast, event, context);
}

void AbsorbedBirths::meet(BirthId id, Fate fate, const OpEvent& event, const OpContext& context) {
    Birth* birth = births_.find(id);
    if (birth == nullptr || birth->escaped || birth->intended) return;
    const bool ends = fate != Fate::ReadLast && fate != Fate::Joined;
    birth->last.within_derivative = ends && is_within_derivative(*birth, context);
    birth->last.fate = fate;
    birth->last.op = event.op->name;
    birth->last.stack = context.stack;
    birth->last.step = context.step;
    birth->last.seq = context.seq;
}

/// Of a birth that the op has read: what its results say.
Fate AbsorbedBirths::fate_of(const Birth& birth, const OpEvent& event) {
    bool floats = false, integers = event.output_count > 0, bad = false, same = false;
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        integers = integers && output.integer != IntegerType::None;
        if (!scannable(output) || is_view(event, output)) continue;
        floats = true;
        const Ledger::Entry* now = ledger_.find(output);
        if (holds(now, birth.id)) return Fate::ReadLast;
        if (now == nullptr || now->finite()) continue;
        bad = true;
        same = same || now->of(static_cast<Kind>(birth.kind)) != 0 || now->of(kNaN) != 0;
    }
    if (integers) return Fate::NoFloats;
    if (!floats) return Fate::ReadLast;
    if (same) return Fate::Joined;
    if (leaves_out(event)) return Fate::Masked;
    return bad ? Fate::ReadLast : Fate::Finite;
}

bool AbsorbedBirths::may_report(const Birth& birth) const {
    if (birth.kind == 0 || birth.escaped || birth.ignored || births_.inherited(birth.id)) return false;
    if (birth.intended || birth.literal || birth.last.within_derivative) return false;
    return !birth.scaler && (!escapes_.scaler_seen() || scalers_.comes_at_any_scale(birth));
}

void AbsorbedBirths::drop(const Birth& birth) {
    if (reported_.erase(birth.id) != 0 || !may_report(birth)) return;
    const std::string place = escapes_.place_of(birth);
    const auto at = dropped_.find(place);
    if (at == dropped_.end() && dropped_.size() >= kMostPlaces) return;
    if (at == dropped_.end())
        dropped_[place] = {escapes_.with_history(birth), 1};
    else
        ++at->second.times;
}

void AbsorbedBirths::report(bool last, Outcome& outcome) {
    std::map<std::string, Group> places = std::exchange(dropped_, {});
    std::set<BirthId> waiting;
    if (!last) pending_.add_births(waiting);
    for (const auto& [id, birth] : births_.all()) {
        if (!may_report(birth) || waiting.count(id) != 0 || !reported_.insert(id).second) continue;
        Group& group = places[escapes_.place_of(birth)];
        if (group.times++ == 0) group.first = escapes_.with_history(birth);
    }
    std::map<BirthId, std::map<std::string, Group>::const_iterator> in_order;
    for (auto at = places.cbegin(); at != places.cend(); ++at) in_order[at->second.first.id] = at;
    for (const auto& [id, at] : in_order) {
        if (!escapes_.has_reported(at->first))
            escapes_.report_absorbed(at->second.first, at->first, at->second.times, outcome);
    }
}

}  // namespace numsan
