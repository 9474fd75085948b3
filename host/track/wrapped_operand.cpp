#include "host/track/wrapped_operand.h"

#include <algorithm>
#include <cmath>

#include "host/base/thresholds.h"
#include "host/log/format.h"
#include "host/ops/op_traits.h"

namespace numsan {
namespace {

using Element = IntegerWraps::Element;

/// What ops did to values on their way to the operand.
enum Change : uint8_t { kAdded = 1, kSubtracted = 2, kScaled = 4, kBent = 8, kLost = 16 };

uint8_t change_by(const Lineage::Record& record) {
    const OpTraits& op = traits_of(record.op->name);
    if (op.is({Form::Cast, Form::Extreme})) return 0;
    if (op.is({Form::Clamp, Form::ClampBelow, Form::Root})) return kBent;
    if (op.is({Form::Negate, Form::Magnitude, Form::Rectify})) return kLost;
    if (record.op->op_class == OpClass::Preserving) return 0;
    if (op.form == Form::Add) return kAdded;
    if (op.form == Form::Subtract) return kSubtracted;
    return op.is({Form::Multiply, Form::Divide, Form::Sum, Form::Mean}) ? kScaled : kLost;
}

std::string integer_or_number(double value) {
    const bool whole = std::fabs(value) < 9007199254740992.0 && value == std::floor(value);
    return whole ? fixed(value, 0) : number(value, 6);
}

/// Whether the operand's values show this element, and with what it should have been they would be in order.
bool explains(const Element& element, uint8_t changes, const Health& health, bool overflows) {
    if (element.known == IntegerWraps::kNothing) return false;
    if (element.known == IntegerWraps::kCut)
        return !overflows && health.zero > 0 && (changes & (kAdded | kSubtracted)) == 0;
    const bool exact = element.known == IntegerWraps::kExact;
    const auto stored = static_cast<double>(element.stored);
    if (overflows) {
        // A difference of unsigned integers that came out large.
        return changes == 0 && exact && stored > std::max(element.exact, 0.0) && health.max >= stored;
    }
    if (stored == 0) return health.zero > 0 && (changes & (kAdded | kSubtracted)) == 0;
    // What a larger one was taken from, which a bound then kept from being negative: a variance out of squares.
    if ((changes & kSubtracted) != 0 && (changes & kBent) != 0 && exact && stored > 0 && element.exact > stored)
        return health.zero > 0;
    if (stored > 0 || health.min >= 0 || (changes & kBent) != 0) return false;
    if (exact && (changes & kScaled) == 0) return health.min + (element.exact - stored) >= 0;
    return (changes & kSubtracted) == 0 && (!exact || element.exact >= 0);
}

std::string description_of(const IntegerWraps::Wrap& wrap, const Element& element, const std::string& op) {
    const IntegerTypeInfo& type = info(static_cast<IntegerType>(wrap.type));
    const std::string most = std::to_string(static_cast<int64_t>(type.most));
    const std::string least = std::to_string(static_cast<int64_t>(type.least));
    if (element.known == IntegerWraps::kCut)
        return "the operand comes from a fraction that a cast cut off: it stored 0 in place of " +
               number(element.exact, 6) + ", as " + type.name + " holds whole numbers";
    const std::string by = traits_of(op).form == Form::Cast ? "a cast" : "`" + op + "`";
    const std::string read =
        element.known == IntegerWraps::kExact
            ? " stored " + std::to_string(element.stored) + " in place of " + integer_or_number(element.exact)
            : " of values from " + integer_or_number(wrap.least) + " to " + integer_or_number(wrap.most) + " stored " +
                  std::to_string(element.stored);
    return "the operand comes from an integer that had wrapped around: " + by + read + ", as " + type.name + " holds " +
           least + " to " + most;
}

}  // namespace

std::optional<WrappedOperand> wrapped_operand(const TensorView& operand, const Health& health, bool overflows,
                                              OpSeq seq, const Lineage& lineage) {
    std::optional<WrappedOperand> found;
    uint8_t changes = 0;  // by every op that was visited: each lies before, or beside, what is visited next
    lineage.ancestors(operand.storage, seq, [&](const Lineage::Record& record, int distance) {
        if (found || distance > kNearInteger) return false;
        IntegerWraps::Wrap wrap;
        if (lineage.wraps().find(record.storage, record.seq, wrap)) {
            const std::string op(plain_op_name(wrap.op->name));
            for (const Element* element : {&wrap.negative, &wrap.zero, &wrap.positive}) {
                if (found || !explains(*element, changes, health, overflows)) continue;
                found = WrappedOperand{description_of(wrap, *element, op), op, element->known == IntegerWraps::kCut,
                                       static_cast<IntegerType>(wrap.type)};
            }
        }
        const uint8_t change = change_by(record);
        if (change == kLost) return false;
        changes |= change;
        return true;
    });
    return found;
}

}  // namespace numsan
