#include "host/birth/external_births.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>

#include "host/cause/measure.h"
#include "host/ops/operands.h"
#include "host/track/bad_number.h"
#include "host/track/layer_input.h"

namespace numsan {
namespace {

/// The number of an operand, -1 of a tensor that is none.
int32_t index_of(const OpEvent& event, const TensorView& input) {
    const std::ptrdiff_t index = &input - event.inputs;
    return index >= 0 && index < event.input_count ? static_cast<int32_t>(index) : -1;
}

/// Whose value a received one is, among the ranks of the group; -1: that is not known.
int64_t sender_of(const Ledger::Received& received, const TensorView& tensor, int64_t first_bad) {
    const bool whole = bytes_of(tensor) == tensor.storage_bytes;
    return received.share > 0 && whole && first_bad >= 0 ? first_bad / received.share : received.from;
}

/// The same in words.
std::string sender_text(const Ledger::Received& received, int64_t from) {
    if (from < 0) return "";
    const bool known = received.group != nullptr && received.group->ranks != nullptr && from < received.group->size;
    return known ? " from rank " + std::to_string(received.group->ranks[from])
                 : " from rank " + std::to_string(from) + " of its group";
}

/// No op of this process wrote it: it came from another, or from the arithmetic on the way.
void came_by_collective(Birth& birth, const Ledger::Received& received, Kind kind, const TensorView& tensor,
                        int64_t first_bad) {
    birth.op = received.op->name;
    birth.stack = received.stack;
    birth.ranges = received.ranges;
    birth.seq = received.seq;
    birth.step = received.step;
    birth.node.clear();
    birth.phase = Phase::Comm;
    const int64_t from = sender_of(received, tensor, first_bad);
    if (received.group != nullptr)
        birth.received = received_fact(
            {received.op, received.group, received.number, received.route, received.step, received.seq}, from);
    const double largest = magnitude_value(info(tensor.dtype).exponent_mask() - 1, tensor.dtype);
    if (kind != kNaN && received.sent * 2 > largest) {
        birth.mechanism = Mechanism::OVF;
        birth.evidence.push_back("this process put in values up to " + std::to_string(received.sent) +
                                 ": twice that is beyond " + info(tensor.dtype).name);
    } else {
        birth.mechanism = Mechanism::DATA;
        birth.evidence.push_back("received" + sender_text(received, from) + ": what this process put in was finite");
    }
}

/// The script says that what the region was given was finite: the result is the first operand, too.
bool made_by_region(const OpEvent& event) {
    return event.op->op_class == OpClass::Region && event.input_count > 0 && event.output_count == 1 &&
           event.inputs[0].impl == event.outputs[0].impl;
}

/// It came out of kernels that torch.compile or AOTInductor wrote.
void explain_compiled(Birth& birth, const OpEvent& event, const OpContext& context, bool package) {
    const bool backward = context.node != nullptr;
    birth.op = kCompiledRegion;
    birth.mechanism = backward ? Mechanism::SING : birth.kind == kNaN ? Mechanism::INDET : Mechanism::OVF;
    birth.phase = backward ? Phase::Backward : Phase::Forward;
    const std::string made =
        package ? "it came out of a package of kernels that AOTInductor wrote: its ops and its weights are not seen"
                : "it came out of a region that torch.compile turned into kernels of its own: its ops are not seen";
    birth.evidence.push_back(made + ", and the line is where " +
                             (made_by_region(event) ? "it was called" : "its result was first read"));
}

/// Memory that no op has written whole since it was allocated.
void explain_unwritten(Birth& birth, const Ledger::Unwritten& unwritten, const OpEvent& event, bool parameter) {
    birth.mechanism = Mechanism::UNINIT;
    birth.op = "aten::empty";
    birth.stack = unwritten.stack;
    birth.ranges = {};  // those are the reader's
    birth.seq = unwritten.seq;
    birth.node.clear();
    birth.phase = parameter ? Phase::Load : event.op->op_class == OpClass::Collective ? Phase::Comm : Phase::Forward;
    const int64_t written = unwritten.bytes - unwritten.missing;
    birth.evidence.push_back((written == 0 ? "nothing wrote this memory"
                                           : "ops wrote only " + std::to_string(written) + " of the " +
                                                 std::to_string(unwritten.bytes) + " bytes of this memory") +
                             " between its allocation and the read by " + event.op->name);
}

/// Values that were there before any op was seen.
void explain_held(Birth& birth, const OpEvent& event, const OpContext& context, bool parameter) {
    if (parameter || updates(event, context)) {
        birth.mechanism = Mechanism::STATE;
        birth.phase = Phase::Load;
        birth.evidence.push_back(parameter ? "the parameter held this value before any op was seen to write it"
                                           : "nothing read it before the optimizer did: it is state that was loaded");
        return;
    }
    birth.mechanism = Mechanism::DATA;
    birth.phase = context.node != nullptr ? birth.phase : Phase::Data;
    birth.evidence.push_back("no op was seen to make this value: it arrived with the tensor");
}

/// Values that an update had left finite.
void explain_overwritten(Birth& birth, const BirthFacts::Update& update) {
    birth.mechanism = Mechanism::STATE;
    birth.phase = Phase::Load;
    birth.left_finite = update.stack;
    birth.evidence.push_back("`" + update.op + "` left the parameter finite in step " + std::to_string(update.step) +
                             ", and no op was seen to write it since");
}

/// Values that an op of the same step had left finite.
void explain_written_over(Birth& birth, const BirthFacts::Update& write) {
    birth.mechanism = Mechanism::DATA;
    if (!write.touched) birth.phase = Phase::Data;
    birth.left_finite = write.stack;
    birth.evidence.push_back("`" + write.op +
                             "` left it finite in the same step, and no op was seen to write it since: its finite "
                             "values still end where they ended then");
}

}  // namespace

/// The collective that brought a tensor's values; null: none did. A backend may hand them over from memory of its own,
/// by a copy into what the collective was to fill, in the same step: gloo does so where it scatters what was reduced.
const Ledger::Received* ExternalBirths::received_with(const TensorView& tensor, const OpEvent& event,
                                                      const OpContext& context) const {
    if (const Ledger::Received* own = ledger_.received(tensor)) return own;
    const bool copies = event.output_count == 1 && event.outputs[0].storage != tensor.storage &&
                        std::strcmp(event.op->name, "aten::copy_") == 0;
    if (!copies || ledger_.unwritten(tensor) != nullptr) return nullptr;
    const Ledger::Received* filled = ledger_.received(event.outputs[0]);
    const bool scatters =
        filled != nullptr && filled->step == context.step && std::strstr(filled->op->name, "reduce_scatter") != nullptr;
    return scatters ? filled : nullptr;
}

/// Kernels of a compiled region made it, whose ops are not seen: an operator called from there reads it, autograd or
/// the region itself says so, or a node hands it on.
bool ExternalBirths::from_compiled(const OpEvent& event, const OpContext& context, const TensorView& t) const {
    if ((context.node != nullptr && context.after_compiled) || made_by_region(event)) return true;
    return (autograd_facts_of(context, t, index_of(event, t)) & kFromCompiled) != 0 ||
           stacks_.in_generated(context.stack);
}

/// What a compiled region was given may have been bad before: the loss, a parameter, what another region made of the
/// same, or what else is bad now and was made in this step. The earliest of these; 0: none is known.
BirthId ExternalBirths::before_region(const OpContext& context) const {
    if (context.node != nullptr && births_.find(births_.bad_loss) != nullptr) return births_.bad_loss;
    BirthId first = 0;
    for (const auto& [storage, entry] : ledger_.entries()) {
        for (const Kind kind : kNonFiniteKinds) {
            const Birth* birth = births_.find(entry.of(kind));
            if (birth == nullptr || !entry.is_sure_of(kind) || birth->intended || birth->ignored) continue;
            if (birth->id != births_.poisoned && birth->step != context.step) continue;
            if (first == 0 || birth->id < first) first = birth->id;
        }
    }
    if (first != 0) return first;
    const auto last = births_.all().rbegin();
    const bool same =
        last != births_.all().rend() && last->second.op == kCompiledRegion && last->second.step == context.step;
    return same ? last->first : 0;
}

/// The run has gone bad, and the ledger has let go of bad tensors of which this may be one. Memory that was just
/// allocated or made of the program's own values is none.
bool ExternalBirths::may_be_forgotten(const TensorView& tensor, const OpEvent& event) const {
    return ledger_.forgotten() != 0 && births_.find(births_.poisoned) != nullptr && !wraps_memory(event) &&
           (tensor.flags & kNumber) == 0 && ledger_.unwritten(tensor) == nullptr;
}

BirthKinds ExternalBirths::made(const TensorView& tensor, const OpEvent& event, const OpContext& context,
                                const Health& health, KindSet kinds) {
    BirthKinds made;
    const Ledger::Received* received = received_with(tensor, event, context);
    for (const Kind kind : kNonFiniteKinds) {
        if ((health.kinds() & kinds & kind) == 0) continue;
        if (received != nullptr && births_.find(received->bad.of(kind)) != nullptr) {  // what it sent has come back
            made.of(kind) = received->bad.of(kind);
            continue;
        }
        const bool itself = made_by_region(event);
        if (received == nullptr && !itself && may_be_forgotten(tensor, event)) {
            made.of(kind) = births_.poisoned;
            continue;
        }
        const bool compiled = received == nullptr && from_compiled(event, context, tensor);
        const BirthId before = compiled && !itself ? before_region(context) : 0;
        made.of(kind) = before != 0 ? before : make(kind, tensor, event, context, health, compiled);
    }
    return made;
}

BirthKinds ExternalBirths::received(KindSet kinds, const TensorView& tensor, const OpEvent& event,
                                    const OpContext& context) {
    if (ledger_.received(tensor) == nullptr) return {};
    return made(tensor, event, context, scanner_.health(tensor), kinds);
}

BirthId ExternalBirths::make(Kind kind, const TensorView& tensor, const OpEvent& event, const OpContext& context,
                             const Health& health, bool compiled) {
    Birth& birth = births_.make(kind, event, context, phase_.of(event, context));
    birth.inputs.push_back(fact_of(tensor, "input", tensor.argument, health, true));
    // torch.tensor(float("inf")) or a mask of -inf: the program wrote it down. A +inf among a table's values came
    // with it.
    const bool written_down = tensor.numel == 1 || (kind == kNegInf && health.pos_inf == 0 && health.nan == 0);
    if (kind != kNaN && event.op->op_class == OpClass::Constant && event.input_count == 1 && written_down) {
        births_.intend(birth);
        return birth.id;
    }
    facts_.grow(birth);
    if (const auto number = bad_number(event, birth.phase == Phase::Optimizer);
        number && (tensor.flags & kNumber) != 0) {
        birth.mechanism = Mechanism::DATA;
        birth.evidence.push_back(said_of_number(birth.op, *number));
        birth.features.bad_number = true;
        facts_.measure(birth, event, context, {});
        return birth.id;
    }
    birth.reader = birth.op;
    birth.op = "external";
    birth.holder = tensor.impl;
    birth.unread = wraps_memory(event);
    birth.literal = birth.unread && tensor.numel == 1;
    const int32_t index = index_of(event, tensor);
    const bool leaf = holds_parameter(context, tensor, index);
    const auto update = leaf ? facts_.last_update(tensor, context) : std::nullopt;
    const bool parameter = leaf && (update || !is_layer_input(event, context, index));
    const Ledger::Unwritten* unwritten = ledger_.unwritten(tensor);
    bool overwritten = false, written_over = false;
    const bool package = compiled && stacks_.in_package(context.stack);
    if (compiled) {
        explain_compiled(birth, event, context, package);
    } else if (unwritten != nullptr) {
        explain_unwritten(birth, *unwritten, event, parameter);
    } else if (const Ledger::Received* received = received_with(tensor, event, context); received != nullptr) {
        came_by_collective(birth, *received, kind, tensor, health.first_bad);
    } else if (update) {
        overwritten = written_over = true;
        explain_overwritten(birth, *update);
    } else if (const auto write = leaf ? std::nullopt : facts_.last_write(tensor, health, context)) {
        overwritten = write->touched;
        written_over = true;
        explain_written_over(birth, *write);
    } else {
        explain_held(birth, event, context, parameter);
    }
    facts_.measure(birth, event, context, {});
    if (compiled) {
        birth.features.op = kCompiledRegion;
        birth.features.package = package;
        birth.features.dtype = tensor.dtype;
    }
    birth.features.reads_parameter = parameter;
    birth.features.overwritten = overwritten;
    birth.features.written_over = written_over;
    birth.features.first_update = unwritten != nullptr && written_by(event, tensor);
    return birth.id;
}

BirthKinds ExternalBirths::of_region(const NodeEvent& event, const TensorView& gradient, const OpContext& context) {
    const OpInfo reader{event.name, "", OpClass::Other, false, 0};
    OpEvent read{};
    read.op = &reader;
    read.inputs = &gradient;
    read.input_count = 1;
    read.forward_sequence = ~uint64_t(0);
    read.graph_task = context.graph_task;
    return made(gradient, read, context, scanner_.health(gradient));
}

/// The operand's birth that a bad value of a region's is of: one of its kind, or the first. 0: there is none.
BirthId ExternalBirths::known_by_replay(KindSet wanted, const BirthKinds& replayed) const {
    BirthId first = 0;
    for (const Kind kind : kNonFiniteKinds) {
        const BirthId id = replayed.of(kind);
        if (id == 0 || births_.intended(id)) continue;
        if (kind == wanted) return id;
        if (first == 0 || id < first) first = id;
    }
    return first;
}

std::vector<ExternalBirths::Replaced> ExternalBirths::explain_region(const OpEvent& event, const OpContext& context) {
    std::vector<Replaced> replaced;
    if (event.input_count < 2 || event.output_count != 1) return replaced;  // it has what it writes for an operand, too
    const TensorView& operand = event.inputs[0];
    const TensorView& output = event.outputs[0];
    if (!scannable(operand) || !scannable(output)) return replaced;
    if (const BirthKinds* known = ledger_.find(operand); known == nullptr || known->finite())
        ledger_.set(operand, made(operand, event, context, scanner_.health(operand)));
    const BirthKinds* known = ledger_.find(operand);
    if (known == nullptr) return replaced;
    const BirthKinds replayed = *known;
    BirthKinds now;
    now.since = context.step;
    for (const Kind kind : kNonFiniteKinds) {
        if ((scanner_.kinds(output) & kind) != 0) now.of(kind) = known_by_replay(kind, replayed);
        Birth* birth = births_.find(replayed.of(kind));
        if (birth == nullptr || !stacks_.in_replay(birth->stack)) continue;
        birth->features.replayed = true;
        const std::string said =
            "torch.compile made kernels of this code: its graph was run once more, op by op, on what the kernels were "
            "given";
        if (std::find(birth->evidence.begin(), birth->evidence.end(), said) == birth->evidence.end())
            birth->evidence.push_back(said);
    }
    for (const auto& [id, birth] : births_.all()) {
        const bool of_operand = id == replayed.birth[0] || id == replayed.birth[1] || id == replayed.birth[2];
        if (of_operand || birth.step != context.step || birth.escaped || birth.intended) continue;
        if (birth.node.empty() != (context.node == nullptr)) continue;  // another pass
        if (!stacks_.in_same_region(birth.stack, context.stack) || stacks_.in_replay(birth.stack)) continue;
        const BirthId to = known_by_replay(birth.kind, replayed);
        if (to != 0) replaced.push_back({id, to});
    }
    // Infinities that the program wrote down explain no NaN: the region made it.
    if (now.finite() && (scanner_.kinds(output) & kNaN) != 0 && (scanner_.kinds(operand) & kNaN) == 0) {
        OpEvent own = event;
        own.inputs = &output;
        own.input_count = 1;
        now.of(kNaN) = made(output, own, context, scanner_.health(output), kNaN).of(kNaN);
    }
    for (const auto& [from, to] : replaced) {
        ledger_.replace(from, to);
        births_.drop(from);
    }
    if (!now.finite()) ledger_.set(output, now);
    return replaced;
}

}  // namespace numsan
