#include "host/birth/birth_facts.h"

#include <cmath>
#include <utility>

#include "host/base/thresholds.h"
#include "host/cause/measure.h"
#include "host/cause/remarks.h"
#include "host/ops/op_traits.h"
#include "host/ops/operands.h"

namespace numsan {
namespace {

constexpr size_t kMaxFacts = 8;  ///< tensors described per side; an optimizer's list can have hundreds

}  // namespace

void BirthFacts::grow(Birth& birth) const {
    birth.features.loss_growth = losses_.divergence();
    birth.features.wrong_target = losses_.wrong_target();
    birth.features.parameter_growth = parameters_.growth();
    birth.features.parameter_start = birth.features.parameter_growth.largest_start;
}

void BirthFacts::describe(Birth& birth, const OpEvent& event) const {
    grow(birth);
    for (int32_t i = 0; i < event.output_count && birth.outputs.size() < kMaxFacts; ++i) {
        const TensorView& output = event.outputs[i];
        if (!scannable(output)) continue;
        birth.outputs.push_back(fact_of(output, "output", i, scanner_.health(output), scanner_.measures(output)));
    }
    for (int32_t i = 0; i < event.input_count && birth.inputs.size() < kMaxFacts; ++i) {
        const TensorView& input = event.inputs[i];
        if (!scannable(input)) continue;
        const bool gone = written_by(event, input) || !scanner_.measures(input);
        birth.inputs.push_back(fact_of(input, "input", i, gone ? Health{} : scanner_.health(input), !gone));
    }
}

std::optional<Lineage::Record> BirthFacts::whole_write(const TensorView& tensor, const OpContext& context) const {
    Lineage::Record last;
    if (!lineage_.find(tensor.storage, last) || last.seq >= context.seq || !last.was_read() || last.is_bad())
        return std::nullopt;
    const auto bytes = static_cast<int64_t>(info(last.dtype).element_bytes());
    return last.numel * bytes == tensor.storage_bytes ? std::optional(last) : std::nullopt;
}

std::optional<BirthFacts::Update> BirthFacts::last_update(const TensorView& parameter, const OpContext& context) const {
    const std::optional<Lineage::Record> found = whole_write(parameter, context);
    if (!found) return std::nullopt;
    const Lineage::Record& last = *found;
    const int64_t step = lineage_.step_of(last.seq);
    // What was updated long ago is likelier to have died, and this to be another tensor at its address.
    if (context.step == 0 || step < context.step - 1 || (last.flags & Lineage::kState) == 0) return std::nullopt;
    // A copy may be that of a checkpoint, which an update followed that was not seen.
    if (last.op->op_class == OpClass::Overwriting) return std::nullopt;
    return Update{last.op->name, step, last.stack, true};
}

std::optional<BirthFacts::Update> BirthFacts::last_write(const TensorView& tensor, const Health& health,
                                                         const OpContext& context) const {
    const std::optional<Lineage::Record> last = whole_write(tensor, context);
    if (!last || last->dtype != tensor.dtype || last->numel != tensor.numel) return std::nullopt;
    const int64_t step = lineage_.step_of(last->seq);
    // Ranges of whole numbers, such as 0 to 1, are many tensors'.
    const auto is_own = [&](double now, uint64_t then) {
        return now == magnitude_value(then, last->dtype) && now != std::floor(now);
    };
    const int ends = is_own(health.absmax, last->largest) + is_own(health.absmin, last->smallest);
    const bool whole = health.absmax == magnitude_value(last->largest, last->dtype) &&
                       health.absmin == magnitude_value(last->smallest, last->dtype);
    // What autograd has a node of was computed: one end may be among the values that were written over.
    const bool computed = (tensor.flags & kRequiresGrad) != 0 && (tensor.flags & kLeaf) == 0;
    if (step != context.step || ends == 0 || (!whole && !computed)) return std::nullopt;
    return Update{last->op->name, step, last->stack, (last->flags & Lineage::kTouched) != 0};
}

void BirthFacts::measure(Birth& birth, const OpEvent& event, const OpContext& context,
                         const ForwardRecord& forward) const {
    Features measured = numsan::measure(event, context, birth.inputs, birth.kind, lineage_);
    measured.bad_number = birth.features.bad_number;
    measured.loss_growth = birth.features.loss_growth;
    measured.parameter_growth = birth.features.parameter_growth;
    measured.parameter_start = birth.features.parameter_start;
    if (measured.wrong_target == 0) measured.wrong_target = birth.features.wrong_target;
    birth.features = std::move(measured);
    birth.features.phase = birth.phase;
    birth.features.mechanism = birth.mechanism;
    birth.features.near_zero = birth.mechanism == Mechanism::OVF &&
                               divisor_near_zero(birth.op, birth.kind, birth.features.dtype, birth.inputs);
    for (int32_t i = 0; i < event.output_count && birth.kind != 0; ++i) {
        const TensorView& output = event.outputs[i];
        if (!holds(output, Kind(birth.kind))) continue;
        birth.in_place = (output.flags & kWritten) != 0 ? output.storage : nullptr;
        break;
    }
    if (context.node == nullptr || forward.op == nullptr) return;
    birth.has_forward = true;
    birth.forward_op = forward.op->name;
    birth.forward_stack = forward.stack;
    birth.forward_ranges = forward.ranges;
    birth.forward_seq = forward.seq;
    birth.features.forward_op = plain_op_name(birth.forward_op);
}

void BirthFacts::count_exponents(Birth& birth, const OpEvent& event) {
    const auto weight = [](const TensorFact& fact) {
        return !fact.remark.empty() ? 2 : fact.health.zero > 0 || fact.health.subnormal > 0 ? 1 : 0;
    };
    TensorFact* chosen = nullptr;
    const TensorView* view = nullptr;
    size_t described = 0;
    for (int32_t i = 0; i < event.input_count && described < birth.inputs.size(); ++i) {
        const TensorView& input = event.inputs[i];
        if (!scannable(input)) continue;
        TensorFact& fact = birth.inputs[described++];
        if (fact.health.finite == 0 || !fact.exact || input.numel > kLargestCounted) continue;
        const bool more = chosen == nullptr || weight(fact) > weight(*chosen) ||
                          (weight(fact) == weight(*chosen) && fact.health.absmax > chosen->health.absmax);
        if (more) chosen = &fact, view = &input;
    }
    if (chosen == nullptr || counted_ + view->numel > kMostCounted) return;
    constexpr size_t kMostPlaces = 1 << 12;
    if (counted_at_.size() >= kMostPlaces && counted_at_.count(birth.stack) == 0) return;
    int64_t& here = counted_at_[birth.stack];
    if (here + view->numel > kMostCounted / 16) return;  // a place whose values are masked away leaves some to others
    here += view->numel;
    counted_ += view->numel;
    chosen->exponents = scanner_.exponents(*view);
}

bool BirthFacts::holds(const TensorView& tensor, Kind kind) const {
    return scannable(tensor) && (scanner_.kinds(tensor) & kind) != 0;
}

}  // namespace numsan
