#include "host/cause/advice.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "host/base/thresholds.h"
#include "host/base/value_classes.h"
#include "host/cause/rules/score.h"
#include "host/log/format.h"
#include "host/ops/op_traits.h"

namespace numsan {
namespace {

/// A row of advice.def. Every field is a list of words between spaces; an empty one fits everything.
struct Advice {
    const char* sentence;
    CategorySet category{};
    MechanismSet mechanism{};
    const char* op = "";         ///< plain names; not for what a known forward op's derivative computes
    const char* forward = "";    ///< plain names of the op that made the autograd node
    const char* upstream = "";   ///< the nearest op upstream that saturates
    const char* reduction = "";  ///< the nearest that reduces
    const char* phase = "";
    const char* dtype = "";  ///< narrow: 16 or 8 bit; wide: not; short: less range than float32; or names
    const char* facts = "";  ///< all of them hold, see holds()
    bool otherwise = false;  ///< only when no row before it fits
    bool enough = false;     ///< no row after it is shown
    FixKinds fix{};          ///< what the sentence changes; each row says it
    const char* trial = "";  ///< how `numsan replay --try` applies it: host/replay/help_rows.py reads it
};

constexpr Advice kRows[] = {
#define NUMSAN_ADVICE(text, ...) {.sentence = text, __VA_ARGS__},
#include "host/cause/advice.def"
#undef NUMSAN_ADVICE
};
static_assert(std::none_of(std::begin(kRows), std::end(kRows), [](const Advice& row) { return row.fix.empty(); }));

/// Calls each(word) for the words of a list while it returns false; what it returned last, `none` for an empty list.
template <class Each>
bool any_word(std::string_view list, bool none, Each&& each) {
    if (list.empty()) return none;
    while (!list.empty()) {
        const size_t end = std::min(list.find(' '), list.size());
        if (each(list.substr(0, end))) return true;
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return false;
}

bool lists(const char* list, std::string_view word) {
    return any_word(list, true, [&](std::string_view listed) { return listed == word; });
}

bool short_range(DType dtype) { return info(dtype).exponent_bits < info(DType::Float32).exponent_bits; }

bool fits(std::string_view word, DType dtype) {
    if (word == "narrow") return info(dtype).is_narrow();
    if (word == "wide") return !info(dtype).is_narrow();
    if (word == "short") return short_range(dtype);
    return word == info(dtype).name;
}

bool holds(std::string_view fact, const Features& f) {
    if (fact == "hidden") return f.hidden;
    if (fact == "own_backward") return f.own_backward;
    if (fact == "parameter") return f.reads_parameter;
    if (fact == "untouched") return !f.operand_touched;
    if (fact == "constant") return of_constants(f);
    if (fact == "operand_parameter") return f.operand_is_parameter;
    if (fact == "first_run") return f.first_run;
    if (fact == "in_module") return f.in_module;
    if (fact == "no_reduction") return f.reduction.empty();
    if (fact == "flushed") return !f.flushed.empty();
    if (fact == "within_one") return f.operand_max > 0 && f.operand_max <= 1;
    if (fact == "ran_before") return f.step > 0 && !f.first_run;
    if (fact == "in_loss") return f.after_parameters && f.loss_known;
    if (fact == "rounded_upstream") return f.narrow_upstream;
    if (fact == "rounded_summed") return f.rounded.summed && !f.rounded.subtracted;
    if (fact == "rounded_multiplied") return f.rounded.matrix_product && !f.rounded.subtracted;
    if (fact == "rounded_subtracted") return f.rounded.subtracted && !f.rounded.summed && !f.rounded.matrix_product;
    if (fact == "negative_infinity") return f.kind == kNegInf;
    if (fact == "no_negative_infinity") return f.kind != kNegInf;
    if (fact == "in_node") return !f.forward_op.empty();
    if (fact == "by_number") return f.by_number;
    if (fact == "no_number") return !f.by_number;
    if (fact == "bad_number") return f.bad_number;
    if (fact == "written_over") return f.written_over;
    if (fact == "diverged") return f.loss_growth > 0 || f.parameter_growth.times >= kGrownByTraining;
    if (fact == "first_step") return f.step == 0;
    if (fact == "wrong_target") return f.wrong_target != 0;
    if (fact == "cut_to_zero") return !f.cut.empty();
    if (fact == "wrapped_cast") return traits_of(f.wrapped_op).form == Form::Cast;
    if (fact == "wrapped") return !f.wrapped_op.empty() && f.wrapped_type != IntegerType::Int64;
    if (fact == "wrapped_int64") return !f.wrapped_op.empty() && f.wrapped_type == IntegerType::Int64;
    if (fact == "compiled") return f.op == kCompiledRegion;
    if (fact == "package") return f.package;
    if (fact == "kernel") return is_kernel(f.op);
    if (fact == "library_call") return is_library_call(f.op);
    if (fact == "scaler") return f.scaler;
    if (fact == "no_scaler") return !f.scaler;
    return false;
}

bool selects(const Advice& row, const Features& f, CategoryId category, Mechanism mechanism) {
    if ((!row.category.empty() && !row.category.contains(category)) || !lists(row.phase, to_string(f.phase)))
        return false;
    const bool by_zero = mechanism == Mechanism::OVF && f.near_zero;
    if (!row.mechanism.empty() && !row.mechanism.contains(by_zero ? Mechanism::DIV0 : mechanism)) return false;
    const bool names_op = row.op[0] != '\0';
    if (names_op && (!lists(row.op, f.op) || (!f.forward_op.empty() && row.forward[0] == '\0'))) return false;
    if (row.forward[0] != '\0' && (f.forward_op.empty() || !lists(row.forward, f.forward_op))) return false;
    if (!lists(row.upstream, f.rounded.op) || !lists(row.reduction, f.reduction)) return false;
    const bool dtype = any_word(row.dtype, true, [&](std::string_view w) { return fits(w, f.dtype); });
    return dtype && !any_word(row.facts, false, [&](std::string_view w) { return !holds(w, f); });
}

std::string power_of_ten(double at_least) {
    return "1e" + std::to_string(static_cast<int>(std::ceil(std::log10(at_least))));
}

/// A normal number of the type, and not smaller than what a quotient and its derivative can bear in float32.
std::string eps(DType dtype) {
    return power_of_ten(std::max(1e-12, std::ldexp(1.0, 1 - static_cast<int>(info(dtype).bias))));
}

/// What the type still resolves next to 1.
std::string gap(DType dtype) { return power_of_ten(std::ldexp(1.0, -info(dtype).mantissa_bits)); }

/// The name people write for an op.
std::string written(std::string op) {
    if (op == "linalg_vector_norm") return "norm";
    if (traits_of(op).form == Form::Cast) return "to";
    for (const char* prefix : {"_", "native_"}) {
        const std::string_view start(prefix);
        if (op.rfind(start, 0) == 0) op.erase(0, start.size());
    }
    if (const size_t end = op.rfind("_forward"); end != std::string::npos) op.erase(end);
    return op;
}

std::string filled(std::string_view sentence, const Features& f) {
    std::string text;
    while (!sentence.empty()) {
        const size_t open = sentence.find('{');
        const size_t close = open == std::string_view::npos ? open : sentence.find('}', open);
        text += sentence.substr(0, open);
        if (close == std::string_view::npos) break;
        const std::string_view name = sentence.substr(open + 1, close - open - 1);
        if (name == "op") text += written(f.op);
        if (name == "forward_op") text += written(f.forward_op);
        if (name == "upstream") text += written(f.rounded.op);
        if (name == "reduction") text += written(f.reduction);
        if (name == "eps") text += eps(f.dtype);
        if (name == "gap") text += gap(f.dtype);
        if (name == "limit") text += number(largest_value(f.dtype), 6);
        if (name == "log_limit") text += fixed(std::floor(std::log(largest_value(f.dtype))), 0);
        if (name == "log2_limit") text += fixed(std::floor(std::log2(largest_value(f.dtype))), 0);
        if (name == "bits") text += std::to_string(info(f.dtype).mantissa_bits + 1);
        if (name == "dtype") text += info(f.dtype).name;
        if (name == "integer_op") text += written(f.wrapped_op);
        if (name == "integer") text += info(f.wrapped_type).name;
        if (name == "least") text += std::to_string(static_cast<int64_t>(info(f.wrapped_type).least));
        if (name == "most") text += std::to_string(static_cast<int64_t>(info(f.wrapped_type).most));
        sentence.remove_prefix(close + 1);
    }
    return text;
}

}  // namespace

size_t advice_row_count() { return std::size(kRows); }

std::vector<size_t> advice_rows(const Features& features, CategoryId category, Mechanism mechanism) {
    std::vector<size_t> rows;
    for (size_t i = 0; i < std::size(kRows) && rows.size() < kMaxAdvice; ++i) {
        if (kRows[i].otherwise && !rows.empty()) continue;
        if (!selects(kRows[i], features, category, mechanism)) continue;
        rows.push_back(i);
        if (kRows[i].enough) break;
    }
    return rows;
}

std::vector<HelpLine> advice(const Features& features, CategoryId category, Mechanism mechanism) {
    std::vector<HelpLine> lines;
    for (const size_t row : advice_rows(features, category, mechanism))
        lines.push_back({filled(kRows[row].sentence, features), kRows[row].fix});
    return lines;
}

}  // namespace numsan
