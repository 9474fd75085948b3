#include "host/track/integer_wraps.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "host/track/elements.h"
#include "host/track/integers.h"

namespace numsan {
namespace {

using Wrap = IntegerWraps::Wrap;

constexpr int64_t kLooked = 1024;       ///< elements of one op that are computed again
constexpr int64_t kGathered = 1 << 14;  ///< of sums and products, whose sign all operands decide

/// The elements of an operand beside those of the output, over whose dimensions it is spread.
class Beside {
  public:
    Beside(const TensorView& operand, const TensorView& output) : operand_(operand), output_(output) {
        spread_ = operand.numel != 1 && !(is_dense(operand) && is_dense(output) && operand.numel == output.numel);
    }
    long double at(int64_t index) const {
        const int64_t offset = operand_.numel == 1 ? 0 : spread_ ? spread(index) : index;
        if (operand_.integer != IntegerType::None) return integer_at(operand_, offset);
        TensorView one = operand_;
        one.ndim = 0;
        const DTypeInfo& type = numsan::info(one.dtype);
        one.data = static_cast<const char*>(one.data) + offset * static_cast<int64_t>(type.lane_bytes);
        // What is not finite has a place in no integer: that is not for the range of this one.
        const bool finite = element_magnitude(one, 0) < value_classes(type).smallest_nonfinite();
        return finite ? element(one, 0) : 0;
    }

  private:
    static bool is_dense(const TensorView& t) {
        int64_t stride = 1;
        for (int d = t.ndim - 1; d >= 0; --d) {
            if (t.sizes[d] != 1 && t.strides[d] != stride) return false;
            stride *= t.sizes[d];
        }
        return true;
    }
    int64_t spread(int64_t index) const {
        int64_t offset = 0;
        for (int d = output_.ndim - 1, own = operand_.ndim - 1; d >= 0 && own >= 0; --d, --own) {
            if (operand_.sizes[own] != 1) offset += index % output_.sizes[d] * operand_.strides[own];
            index /= output_.sizes[d];
        }
        return offset;
    }

    const TensorView& operand_;
    const TensorView& output_;
    bool spread_;
};

void keep(Wrap& wrap, long double exact, long double stored, uint64_t known) {
    IntegerWraps::Element& element = stored < 0 ? wrap.negative : stored == 0 ? wrap.zero : wrap.positive;
    if (element.known == 0) element = {static_cast<double>(exact), static_cast<int64_t>(stored), known};
}

bool readable(const TensorView& t) {
    return holds_integers(t) || ((t.flags & kScannable) != 0 && info(t.dtype).lanes == 1 && t.data != nullptr);
}

bool is_written(const OpEvent& event, const TensorView& t) { return t.storage == event.outputs[0].storage; }

/// What the op read is still there.
bool is_beside(const OpEvent& event, const TensorView& t) { return readable(t) && !is_written(event, t); }

/// Calls each(index, stored) for elements of the output, evenly spread.
template <class Each>
void sample(const TensorView& output, Each&& each) {
    const int64_t step = std::max<int64_t>(output.numel / kLooked, 1);
    for (int64_t i = 0; i < output.numel; i += step) each(i, integer_at(output, offset_of(output, i)));
}

double scalar(const OpEvent& event, int32_t index, double otherwise) {
    return index < event.scalar_count ? event.scalars[index] : otherwise;
}

/// a_factor * a + b_factor * b. Where it was written over a, what that was follows from the result.
void look_at_sum(const OpEvent& event, double a_factor, double b_factor, Wrap& wrap) {
    const TensorView& output = event.outputs[0];
    const IntegerTypeInfo& type = info(output.integer);
    const TensorView& a = event.inputs[0];
    const bool over = is_written(event, a);
    const bool two = event.input_count > 1;
    if (!readable(a) || (two && !is_beside(event, event.inputs[1])) || (over && a_factor != 1)) return;
    if (!two && event.scalar_count == 0) return;
    const Beside first(a, output);
    const Beside second(two ? event.inputs[1] : a, output);
    const double number = scalar(event, 0, 0);
    const long double wide = type.most - type.least + 1;
    sample(output, [&](int64_t i, long double stored) {
        const long double added = b_factor * (two ? second.at(i) : static_cast<long double>(number));
        if (over) {
            const long double before = stored - added;
            if (before < type.least) keep(wrap, stored + wide, stored, IntegerWraps::kExact);
            if (before > type.most) keep(wrap, stored - wide, stored, IntegerWraps::kExact);
            return;
        }
        const long double exact = a_factor * first.at(i) + added;
        if (exact < type.least || exact > type.most) keep(wrap, exact, stored, IntegerWraps::kExact);
    });
}

/// `exact(i)` is what element i should be.
template <class Exact>
void look_at_each(const TensorView& output, Exact&& exact, Wrap& wrap) {
    const IntegerTypeInfo& type = info(output.integer);
    sample(output, [&](int64_t i, long double stored) {
        const long double value = exact(i);
        // Casts cut off what is behind the point.
        if (value <= type.least - 1 || value >= type.most + 1) keep(wrap, value, stored, IntegerWraps::kExact);
    });
}

void look_at_product(const OpEvent& event, Wrap& wrap) {
    const TensorView& output = event.outputs[0];
    const TensorView& a = event.inputs[0];
    const bool two = event.input_count > 1;
    if (!is_beside(event, a) || (two && !is_beside(event, event.inputs[1]))) return;
    if (!two && event.scalar_count == 0) return;
    const Beside first(a, output);
    const Beside second(two ? event.inputs[1] : a, output);
    const auto number = static_cast<long double>(scalar(event, 0, 1));
    look_at_each(
        output, [&](int64_t i) { return first.at(i) * (two ? second.at(i) : number); }, wrap);
}

void look_at_power(const OpEvent& event, Wrap& wrap) {
    const TensorView& output = event.outputs[0];
    const TensorView& operand = event.inputs[0];
    if (event.input_count != 1 || event.scalar_count == 0 || !is_beside(event, operand)) return;
    const Beside elements(operand, output);
    const auto number = static_cast<long double>(scalar(event, 0, 1));
    const bool is_base = std::strcmp(event.op->overload, "Scalar") == 0;  // the number is, not the tensor
    const auto power = [&](int64_t i) {
        return is_base ? std::pow(number, elements.at(i)) : std::pow(elements.at(i), number);
    };
    look_at_each(output, power, wrap);
}

void look_at_cast(const OpEvent& event, Wrap& wrap) {
    const TensorView& output = event.outputs[0];
    const bool over = is_written(event, event.inputs[0]);  // copy_ writes its first operand
    if (over && event.input_count < 2) return;
    const TensorView& from = event.inputs[over ? 1 : 0];
    if (!readable(from) || is_written(event, from)) return;
    if (holds_integers(from) && info(from.integer).least >= info(output.integer).least &&
        info(from.integer).most <= info(output.integer).most)
        return;
    const Beside values(from, output);
    const bool cuts = !holds_integers(from);
    long double cut = 0;  // a fraction of which zero is stored
    const auto exact = [&](int64_t i) {
        const long double value = values.at(i);
        if (cuts && cut == 0 && value > -1 && value < 1) cut = value;
        return value;
    };
    look_at_each(output, exact, wrap);
    if (cut != 0) keep(wrap, cut, 0, IntegerWraps::kCut);  // unless a zero that wrapped around is known
}

/// Sums and products of what is not negative are not negative, and of what is positive not zero.
void look_at_gathered(const OpEvent& event, Wrap& wrap) {
    const TensorView& output = event.outputs[0];
    if (output.numel > kGathered) return;
    long double least = 0;
    long double most = 0;
    long double sum = 0;
    bool any = false;
    for (int32_t k = 0; k < event.input_count; ++k) {
        const TensorView& input = event.inputs[k];
        if (!holds_integers(input) || input.numel == 0 || input.numel > kGathered || is_written(event, input)) return;
        for (int64_t i = 0; i < input.numel; ++i) {
            const long double value = integer_at(input, offset_of(input, i));
            least = any ? std::min(least, value) : value;
            most = any ? std::max(most, value) : value;
            sum += value;
            any = true;
        }
    }
    if (!any) return;
    const IntegerTypeInfo& type = info(output.integer);
    if (output.numel == 1 && event.input_count == 1 && std::strcmp(event.op->name, "aten::sum") == 0) {
        if (sum < type.least || sum > type.most) keep(wrap, sum, integer_at(output, 0), IntegerWraps::kExact);
        return;
    }
    wrap.least = static_cast<double>(least);
    wrap.most = static_cast<double>(most);
    if (least < 0) return;
    for (int64_t i = 0; i < output.numel; ++i) {
        const long double stored = integer_at(output, offset_of(output, i));
        if (stored < 0 || (stored == 0 && least > 0)) keep(wrap, 0, stored, IntegerWraps::kSign);
    }
}

/// Where only deliberate arithmetic, of hashes, or numbers of the wrong kind leave the type. Sums of ordinary indices
/// are too many to look at.
bool is_wide(IntegerType type) { return type == IntegerType::Int64; }

}  // namespace

void IntegerWraps::look(const OpEvent& event, OpSeq seq) noexcept {
    const TensorView& output = event.outputs[0];
    const IntegerOp op = event.op->integer_op;
    if (!holds_integers(output) || output.integer == IntegerType::Bool || output.numel == 0 || event.input_count == 0)
        return;
    if (is_wide(output.integer) && op != IntegerOp::Multiply && op != IntegerOp::Power) return;
    // A number added is the first scalar, its factor the next; of a tensor the factor is the first.
    const double factor = scalar(event, event.input_count > 1 ? 0 : 1, 1);
    Wrap wrap;
    switch (op) {
        case IntegerOp::Add: look_at_sum(event, 1, factor, wrap); break;
        case IntegerOp::Subtract: look_at_sum(event, 1, -factor, wrap); break;
        case IntegerOp::SubtractFrom: look_at_sum(event, -factor, 1, wrap); break;
        case IntegerOp::Multiply: look_at_product(event, wrap); break;
        case IntegerOp::Power: look_at_power(event, wrap); break;
        case IntegerOp::Cast: look_at_cast(event, wrap); break;
        case IntegerOp::Gather: look_at_gathered(event, wrap); break;
        default: return;
    }
    const uint64_t known = wrap.negative.known | wrap.zero.known | wrap.positive.known;
    if (known == kNothing) return;
    wrap.storage = output.storage;
    wrap.op = event.op;
    wrap.seq = seq;
    wrap.type = static_cast<uint64_t>(output.integer);
    if (known == kCut)
        cuts_[next_cut_.fetch_add(1, std::memory_order_relaxed) % kCuts].store(wrap);
    else
        wraps_[next_.fetch_add(1, std::memory_order_relaxed) % kKept].store(wrap);
}

bool IntegerWraps::find(const void* storage, OpSeq seq, Wrap& wrap) const noexcept {
    const auto is_it = [&](const AtomicRecord<Wrap>& record) {
        return record.load(wrap) && wrap.storage == storage && wrap.seq == seq && seq != OpSeq::None;
    };
    return std::any_of(wraps_.begin(), wraps_.end(), is_it) || std::any_of(cuts_.begin(), cuts_.end(), is_it);
}

}  // namespace numsan
