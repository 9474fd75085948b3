#include "host/event/past_ops.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "host/ops/effect.h"

namespace numsan {
namespace {

/// An op that makes or fills a tensor with the program's finite values: its result was written since, without an
/// operator.
bool cannot_make_bad_values(const OpEvent& event) {
    const Form form = traits_of(event).form;
    if (form == Form::Finite) return true;
    return form == Form::Fill && event.scalar_count > 0 &&
           std::all_of(event.scalars, event.scalars + event.scalar_count, [](double x) { return std::isfinite(x); });
}

/// An op whose results have these kinds only if its operands were not finite. A NaN makes an infinity beside it likely.
bool has_kinds_by_operands_only(const OpEvent& event, KindSet kinds, DType dtype) {
    const OpTraits& op = traits_of(event);
    const KindSet may = effect({op, {}, {}, dtype}).may;
    return (may & ((kinds & kNaN) != 0 ? KindSet(kNaN) : kinds)) == 0;
}

/// Of each op: who wrote its operands that are gone.
using UnavailableWriters = std::map<const LoggedOp*, std::vector<const LoggedOp*>>;

UnavailableWriters unavailable_writers_of(const std::vector<LoggedOp*>& ops) {
    std::map<const void*, const LoggedOp*> writer;  // of each storage, up to here
    UnavailableWriters writers;
    for (const LoggedOp* op : ops) {
        std::vector<const LoggedOp*>& behind = writers[op];
        for (int32_t i = 0; i < op->event.input_count; ++i) {
            if ((op->inputs[i].flags & kUnavailable) == 0) continue;
            if (const auto it = writer.find(op->inputs[i].storage); it != writer.end()) behind.push_back(it->second);
        }
        for (int32_t i = 0; i < op->event.output_count; ++i) writer[op->outputs[i].storage] = op;
    }
    return writers;
}

/// Ops whose results are gone, and which something bad was computed from by way of results that are gone.
std::set<const LoggedOp*> candidates_of(const std::vector<LoggedOp*>& ops) {
    const UnavailableWriters writers = unavailable_writers_of(ops);
    std::set<const LoggedOp*> candidates;
    for (const LoggedOp* op : ops) {
        if (!op->bad.any()) continue;
        std::vector<const LoggedOp*> next{op};
        while (!next.empty()) {
            const LoggedOp* at = next.back();
            next.pop_back();
            for (const LoggedOp* before : writers.at(at)) {
                if (!before->bad.any() && candidates.insert(before).second) next.push_back(before);
            }
        }
    }
    return candidates;
}

/// Its operands are all there, and would have said that it made something bad. Precondition: they do not say so.
bool is_ruled_out(const LoggedOp& op) {
    return op.context.unavailable == 0 && is_decided_by_ranges(traits_of(op.event)) &&
           std::all_of(op.inputs, op.inputs + op.event.input_count, [](const TensorView& t) { return scannable(t); });
}

/// An op whose result, which is gone, has an infinity that the program wrote down: it wrote it, or chose among what has
/// one.
bool carries_infinity(const LoggedOp& op, const std::vector<const LoggedOp*>& writers,
                      const std::set<const LoggedOp*>& intended_infinities) {
    if (op.event.op->op_class == OpClass::Constant && op.event.infinite_scalar) return true;
    if (op.event.op->op_class != OpClass::Preserving && traits_of(op.event).form != Form::Choose) return false;
    return std::any_of(writers.begin(), writers.end(),
                       [&](const LoggedOp* from) { return intended_infinities.count(from) != 0; });
}

/// Which ops of a look back must have made bad values of which kinds, though their results are unavailable: bad results
/// after them have these kinds only if their operands had them.
class Implications {
  public:
    Implications(const std::vector<LoggedOp*>& ops, const Scanner& scanner, Verdict& verdict)
        : ops_(ops), scanner_(scanner), verdict_(verdict), writers_(unavailable_writers_of(ops)) {}

    std::map<const LoggedOp*, KindSet> find() {
        for (const LoggedOp* op : ops_) {
            if (carries_infinity(*op, writers_.at(op), intended_infinities_)) intended_infinities_.insert(op);
            // An operand that is there explains the result.
            if (!op->bad.any() || op->context.unavailable == 0 || reads_bad(*op)) continue;
            const KindSet kinds = kinds_of(*op);
            if (propagates(*op, kinds)) follow(*op, kinds);
        }
        return std::move(implied_);
    }

  private:
    /// What was met on the way back from a bad result.
    struct Origin {
        bool explained = false;           ///< by an op that is known to have made or read bad values
        bool infinite = false;            ///< an infinity that the program wrote on purpose has met something
        const LoggedOp* maker = nullptr;  ///< the last op that may have made them
        const LoggedOp* grew = nullptr;   ///< where an infinity may have been too large a sum or product
    };

    bool reads_bad(const LoggedOp& op) const {
        return std::any_of(op.inputs, op.inputs + op.event.input_count, [&](const TensorView& t) {
            return scannable(t) && !written_by(op.event, t) && scanner_.range(t).suspicious;
        });
    }

    KindSet kinds_of(const LoggedOp& op) const {
        KindSet kinds = 0;
        for (int32_t i = 0; i < op.event.output_count; ++i) {
            if (op.bad.contains(i)) kinds |= scanner_.kinds(op.outputs[i]);
        }
        return kinds;
    }

    static bool propagates(const LoggedOp& op, KindSet kinds) {
        const DType dtype = op.event.output_count > 0 ? op.outputs[0].dtype : DType::Float32;
        return op.event.op->op_class == OpClass::Preserving || has_kinds_by_operands_only(op.event, kinds, dtype);
    }

    static void keep_later(const LoggedOp*& kept, const LoggedOp& op) {
        if (kept == nullptr || op.context.seq > kept->context.seq) kept = &op;
    }

    void follow(const LoggedOp& bad, KindSet kinds) {
        const Origin origin = origin_of(bad, kinds);
        if (origin.explained) return;
        for (const LoggedOp* intended : intended_infinities_) {
            if (origin.infinite) implied_[intended] = kAnyInf;
        }
        const bool grew = origin.maker == nullptr && (kinds & kNaN) == 0;
        const LoggedOp* maker = grew ? origin.grew : origin.maker;
        if (maker != nullptr && maker != &bad) implied_[maker] = kinds;
    }

    /// Back through ops whose results are unavailable and that propagate these kinds.
    Origin origin_of(const LoggedOp& bad, KindSet kinds) const {
        Origin origin;
        std::set<const LoggedOp*> seen;
        std::vector<const LoggedOp*> next{&bad};
        while (!next.empty() && !origin.explained) {
            const LoggedOp* at = next.back();
            next.pop_back();
            if (!seen.insert(at).second || (at != &bad && !passes(*at, kinds, origin))) continue;
            const std::vector<const LoggedOp*>& before = writers_.at(at);
            // What the program wrote there on purpose has met something here: 0 times it, or itself.
            const auto is_intended = [&](const LoggedOp* from) { return intended_infinities_.count(from) != 0; };
            if ((kinds & kNaN) != 0 && !is_intended(at) && std::any_of(before.begin(), before.end(), is_intended)) {
                origin.infinite = true;
                origin.maker = at;
                break;
            }
            next.insert(next.end(), before.begin(), before.end());
        }
        return origin;
    }

    /// Whether the way back goes on through this op; if not, it may have made the values.
    bool passes(const LoggedOp& op, KindSet kinds, Origin& origin) const {
        origin.explained = op.bad.any() || reads_bad(op) || implied_.count(&op) != 0 || verdict_.is_certain(op.event);
        if (op.event.op->op_class == OpClass::Constant || cannot_make_bad_values(op.event)) return false;
        if (!propagates(op, kinds)) {
            if (!is_ruled_out(op)) keep_later(origin.maker, op);
            return false;
        }
        if (!has_kinds_by_operands_only(op.event, kAnyInf, DType::Float16)) keep_later(origin.grew, op);
        return true;
    }

    const std::vector<LoggedOp*>& ops_;
    const Scanner& scanner_;
    Verdict& verdict_;
    const UnavailableWriters writers_;
    std::set<const LoggedOp*> intended_infinities_;
    std::map<const LoggedOp*, KindSet> implied_;
};

}  // namespace

/// Ops of the past, oldest first: what is left of their results has been looked at, what is gone is marked.
void PastOps::judge(const std::vector<LoggedOp*>& ops, Outcome& outcome) {
    const std::set<const LoggedOp*> candidates = candidates_of(ops);
    const std::map<const LoggedOp*, KindSet> implied = Implications(ops, scanner_, verdict_).find();
    for (LoggedOp* op : ops) {
        if (op->bad.any() && cannot_make_bad_values(op->event)) continue;
        ForwardRecord forward;
        contexts_.forward_of(op->context, forward);
        BirthId born = 0;
        const auto must = implied.find(op);
        const bool candidate = !op->bad.any() && (must != implied.end() || candidates.count(op) != 0);
        if (!candidate || !verdict_.presume(op->event, op->context, forward,
                                            must != implied.end() ? must->second : KindSet(0), &born)) {
            verdict_.op(op->event, op->context, op->bad, forward, &born, outcome);
        }
        if (op->makes_node && born != 0) contexts_.forwards().born(op->made, born);
    }
    verdict_.end_look_back();
}

}  // namespace numsan
