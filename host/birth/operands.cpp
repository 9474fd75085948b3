#include "host/birth/operands.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "host/ops/op_traits.h"

namespace numsan {

bool written_by(const OpEvent& event, const TensorView& input) {
    // A rank's own part of the buffer that a collective fills is handed on as it is.
    const bool whole = event.op->op_class != OpClass::Collective;
    return std::any_of(event.outputs, event.outputs + event.output_count, [&](const TensorView& output) {
        return (output.flags & kWritten) != 0 && output.storage == input.storage &&
               (whole || output.impl == input.impl);
    });
}

bool sends(const OpEvent& event, const TensorView& input) {
    if (!written_by(event, input)) return true;
    // One rank sends and all others receive. Which this one is, the event does not say: what it is about to receive may
    // be unwritten memory.
    const std::string_view op = plain_op_name(event.op->name);
    if (op == "broadcast" || op == "scatter") return false;
    const auto in_place = [&](const TensorView& other) { return written_by(event, other); };
    return std::all_of(event.inputs, event.inputs + event.input_count, in_place) &&
           std::strstr(event.op->name, "::recv") == nullptr;
}

bool adopts_storage(const OpEvent& event) {
    return event.output_count > 0 && std::strcmp(event.op->name, "aten::set_") == 0;
}

}  // namespace numsan
