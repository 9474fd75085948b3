// Births of values that no op was seen to make: unwritten memory, what other processes sent, compiled regions, state
// and data.
#include <algorithm>
#include <cstddef>
#include <string>

#include "host/cause/measure.h"
#include "host/track/bad_number.h"
#include "host/verdict/births.h"

namespace numsan {
namespace {

/// What autograd knows of an input.
uint32_t autograd_facts(const OpEvent& event, const OpContext& context, const TensorView& input) {
    const std::ptrdiff_t index = &input - event.inputs;
    return index < event.input_count ? autograd_facts_of(context, input, index) : input.flags >> kAutogradFactsShift;
}

bool view_of_parameter(const OpEvent& event, const OpContext& context, const TensorView& t) {
    return (autograd_facts(event, context, t) & kViewOfParameter) != 0;
}

}  // namespace

/// Kernels of a compiled region made it, whose ops are not seen: an operator called from there reads it, autograd
/// says so, or a node hands it on.
bool Births::from_compiled(const OpEvent& event, const OpContext& context, const TensorView& t) const {
    if (context.node != nullptr && context.after_compiled) return true;
    return (autograd_facts(event, context, t) & kFromCompiled) != 0 || stacks_.in_generated(context.stack);
}

/// What a compiled region was given may have been bad before: the loss, a parameter, what another region made of the
/// same, or what else is bad now and was made in this step. The earliest of these; 0: none is known.
BirthId Births::before_region(const OpContext& context) const {
    if (context.node != nullptr && find(bad_loss_) != nullptr) return bad_loss_;
    BirthId first = 0;
    for (const auto& [storage, entry] : ledger_.entries()) {
        for (const Kind kind : kNonFiniteKinds) {
            const Birth* birth = find(entry.of(kind));
            if (birth == nullptr || !entry.is_sure_of(kind) || birth->intended || birth->ignored) continue;
            if (birth->id != poisoned_ && birth->step != context.step) continue;
            if (first == 0 || birth->id < first) first = birth->id;
        }
    }
    if (first != 0) return first;
    const auto last = births_.rbegin();
    const bool same = last != births_.rend() && last->second.op == kCompiledRegion && last->second.step == context.step;
    return same ? last->first : 0;
}

Births::Kinds Births::external(const TensorView& tensor, const OpEvent& event, const OpContext& context,
                               const Health& health) {
    Kinds made;
    const Ledger::Unwritten* unwritten = ledger_.unwritten(tensor);
    const Ledger::Received* received = ledger_.received(tensor);
    for (const Kind kind : kNonFiniteKinds) {
        if ((health.kinds() & kind) == 0) continue;
        if (received != nullptr && find(received->bad.of(kind)) != nullptr) {  // what it sent has come back
            made.of(kind) = received->bad.of(kind);
            continue;
        }
        const bool compiled = received == nullptr && from_compiled(event, context, tensor);
        if (const BirthId before = compiled ? before_region(context) : 0; before != 0) {
            made.of(kind) = before;
            continue;
        }
        Birth& birth = make(kind, event, context);
        birth.inputs.push_back(fact_of(tensor, "input", tensor.argument, health, true));
        made.of(kind) = birth.id;
        // torch.tensor(float("inf")) or a mask of -inf: the program wrote it down. A +inf among a table's values came
        // with it.
        const bool written_down = tensor.numel == 1 || (kind == kNegInf && health.pos_inf == 0 && health.nan == 0);
        if (kind != kNaN && event.op->op_class == OpClass::Constant && event.input_count == 1 && written_down) {
            birth.intended = true;
            continue;
        }
        if (const auto number = bad_number(event, birth.phase == Phase::Optimizer);
            number && (tensor.flags & kNumber) != 0) {
            birth.mechanism = Mechanism::DATA;
            birth.evidence.push_back(said_of_number(birth.op, *number));
            measure_into(birth, event, context, {});
            birth.features.bad_number = true;
            ++made_;
            continue;
        }
        birth.reader = birth.op;
        birth.op = "external";
        birth.holder = tensor.impl;
        birth.unread = wraps_memory(event);
        if (compiled) {
            birth.op = kCompiledRegion;
            birth.mechanism = context.node != nullptr ? Mechanism::SING
                              : kind == kNaN          ? Mechanism::INDET
                                                      : Mechanism::OVF;
            birth.phase = context.node != nullptr ? Phase::Backward : Phase::Forward;
            birth.evidence.push_back(
                "it came out of a region that torch.compile turned into kernels of its own: its ops are not "
                "seen, and the line is where its result was first read");
        } else if (unwritten != nullptr) {
            birth.mechanism = Mechanism::UNINIT;
            birth.op = "aten::empty";
            birth.stack = unwritten->stack;
            birth.seq = unwritten->seq;
            birth.node.clear();
            birth.phase = is_parameter(tensor) || view_of_parameter(event, context, tensor) ? Phase::Load
                          : event.op->op_class == OpClass::Collective                       ? Phase::Comm
                                                                                            : Phase::Forward;
            const int64_t written = unwritten->bytes - unwritten->missing;
            birth.evidence.push_back((written == 0 ? "nothing wrote this memory"
                                                   : "ops wrote only " + std::to_string(written) + " of the " +
                                                         std::to_string(unwritten->bytes) + " bytes of this memory") +
                                     " between its allocation and the read by " + event.op->name);
        } else if (received != nullptr) {
            came_by_collective(birth, *received, kind, tensor, health.first_bad);
        } else if (is_parameter(tensor) || view_of_parameter(event, context, tensor)) {
            birth.mechanism = Mechanism::STATE;
            birth.phase = Phase::Load;
            birth.evidence.push_back("the parameter held this value before any op was seen to write it");
        } else if (updates(event, context)) {
            birth.mechanism = Mechanism::STATE;
            birth.phase = Phase::Load;
            birth.evidence.push_back("nothing read it before the optimizer did: it is state that was loaded");
        } else {
            birth.mechanism = Mechanism::DATA;
            birth.phase = context.node != nullptr ? birth.phase : Phase::Data;
            birth.evidence.push_back("no op was seen to make this value: it arrived with the tensor");
        }
        measure_into(birth, event, context, {});
        if (compiled) {
            birth.features.op = kCompiledRegion;
            birth.features.dtype = tensor.dtype;
        }
        birth.features.reads_parameter = is_parameter(tensor) || view_of_parameter(event, context, tensor);
        birth.features.first_update = unwritten != nullptr && written_by(event, tensor);
        ++made_;
    }
    return made;
}

Births::Kinds Births::of_region(const NodeEvent& event, const TensorView& gradient, const OpContext& context) {
    const OpInfo reader{event.name, "", OpClass::Other, false, 0};
    OpEvent read{};
    read.op = &reader;
    read.inputs = &gradient;
    read.input_count = 1;
    read.forward_sequence = ~uint64_t(0);
    read.graph_task = context.graph_task;
    return external(gradient, read, context, scanner_.health(gradient));
}

}  // namespace numsan
