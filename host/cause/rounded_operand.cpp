#include "host/cause/rounded_operand.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "host/base/thresholds.h"
#include "host/base/value_classes.h"
#include "host/track/lineage.h"

namespace numsan {
namespace {

/// Whether a limit that an operand was rounded to may be one of the result, too: where it was moved, scaled, shifted,
/// summed or written over in part, and where nothing is known of the op. What rounds, rectifies or draws random numbers
/// has zeros of its own.
bool keeps_limits(const Lineage::Record& record, const Lineage& lineage) {
    const OpTraits& op = traits_of(record.op->name);
    if (op.form == Form::Fill) {  // of a part of what was there, which is the last that a write in place lists
        Lineage::Record own;
        return record.input_count > 0 && lineage.find(record.inputs[record.input_count - 1], own) &&
               own.storage == record.storage && own.numel > record.numel;
    }
    if (op.form == Form::Divide && std::strstr(record.op->overload, "_mode") != nullptr) return false;  // floor, trunc
    return op.names.empty() || op.has(kReduces) ||
           op.is({Form::Move,       Form::Cast,         Form::Negate,      Form::Magnitude,  Form::Choose,
                  Form::ClampBelow, Form::ClampAbove,   Form::Replace,     Form::FillPlaces, Form::Add,
                  Form::Subtract,   Form::SubtractFrom, Form::Interpolate, Form::Sum,        Form::Multiply,
                  Form::AddProduct, Form::Square,       Form::Power,       Form::Divide,     Form::AddQuotient,
                  Form::Reciprocal, Form::Root,         Form::InverseRoot, Form::Log,        Form::Log1p});
}

/// What an op had rounded to its limit makes a logarithm infinite. A negative operand was not rounded.
bool has_value_at_pole(const OpTraits& logarithm, const TensorFact& operand) {
    if (!operand.exact) return true;
    return logarithm.form == Form::Log1p ? operand.health.min == -1 : operand.health.zero > 0;
}

/// What the ops between a write and the operand did, by the shortest way.
struct Way {
    Lineage::WriteId from;
    RoundedOperand done = {};
};

/// The way on through `record`, to what it read.
Way through(const Lineage::Record& record, Way way) {
    const OpTraits& op = traits_of(record.op->name);
    way.done.summed = way.done.summed || op.form == Form::Sum;
    way.done.matrix_product = way.done.matrix_product || op.form == Form::MatrixProduct;
    way.done.subtracted = way.done.subtracted || op.is({Form::Subtract, Form::SubtractFrom, Form::Negate});
    return way;
}

/// The smallest magnitude in it, zeros left out; 0 where there are only zeros, infinity where none was read.
double nearest_zero(const Lineage::Record& record) {
    if (!record.was_read()) return std::numeric_limits<double>::infinity();
    return record.largest == 0 ? 0 : magnitude_value(record.smallest, record.dtype);
}

}  // namespace

RoundedOperand rounded_operand(const OpTraits& reader, const TensorView& operand, const TensorFact* fact, OpSeq seq,
                               const Lineage& lineage) {
    RoundedOperand found;
    const bool logarithm = is_logarithm(reader);
    if (fact != nullptr && logarithm && !has_value_at_pole(reader, *fact)) return found;
    const bool of_zero = logarithm && reader.form != Form::Log1p;
    double least = 0;  // of what was found
    std::vector<Way> ways;
    lineage.ancestors(operand.storage, seq, [&](const Lineage::Record& record, int distance) {
        if (distance > kNearUpstream || (!found.op.empty() && !of_zero)) return false;
        const auto known = std::find_if(ways.begin(), ways.end(), [&](const Way& w) { return w.from == record.id; });
        const Way way = known == ways.end() ? Way{record.id} : *known;
        if (traits_of(record.op->name).has(kSaturates)) {
            const double smallest = nearest_zero(record);
            const bool of_one = way.done.subtracted || found.subtracted;  // the limit may be one, and the zero its rest
            if (found.op.empty() || (!of_one && std::isfinite(least) && smallest < least / kMuchNearerZero)) {
                found = way.done;
                found.op = plain_op_name(record.op->name);
                least = smallest;
            }
        }
        if (!keeps_limits(record, lineage)) return false;
        Way behind = through(record, way);
        for (uint8_t i = 0; i < record.input_count; ++i) {
            behind.from = record.inputs[i];
            ways.push_back(behind);
        }
        return true;
    });
    return found;
}

}  // namespace numsan
