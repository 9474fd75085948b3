#include "host/birth/collective_results.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "host/cause/measure.h"
#include "host/ops/op_traits.h"
#include "host/ops/operands.h"

namespace numsan {
namespace {

bool is_functional(const OpEvent& event) { return std::strncmp(event.op->name, "_c10d_functional::", 18) == 0; }

/// Whose values output `index` of a collective will hold, where that does not depend on the values.
void note_sender(const OpEvent& event, int32_t index, Ledger::Received& received) {
    const std::string_view op = plain_op_name(event.op->name);
    const CollectiveWay way = received.route.way;
    if (way == CollectiveWay::OneToAll || way == CollectiveWay::Receive) received.from = received.route.peer;
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

}  // namespace

/// The largest magnitude of an operand of a collective: as it was written, because the collective may already have
/// changed it.
double CollectiveResults::sent(const TensorView& operand) const {
    Lineage::Record written;
    const double remembered =
        lineage_.find(operand.storage, written) ? magnitude_value(written.largest, written.dtype) : 0;
    return remembered > 0 && std::isfinite(remembered) ? remembered : scanner_.health(operand).absmax;
}

void CollectiveResults::receive(const OpEvent& event, const OpContext& context, const BirthKinds& before) {
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
        received.ranges = context.ranges;
        received.bad = before;
        received.group = event.communicator;
        received.number = context.collective;
        received.route = route_of(event);
        note_sender(event, i, received);
        // A functional collective has called the one that knows the group.
        if (const Ledger::Received* inner = ledger_.received(output); inner != nullptr && is_functional(event)) {
            received.group = inner->group;
            received.number = inner->number;
            received.route = inner->route;
            if (received.from < 0) received.from = inner->from;
        }
        ledger_.mark_received(output, received);
    }
}

}  // namespace numsan
