// N4: the loss is written in an unstable or wrong way.
#include "host/cause/rules/rules.h"

namespace numsan {

void loss_computation(const Features& f, Score& score) {
    if (f.phase != Phase::Forward || f.hidden) return;
    const OpTraits& op = traits_of(f.op);
    if (op.has(kLoss)) {
        score.add(f.mechanism == Mechanism::OVF ? 0 : 3, f.op + " is a loss");
    }
    if (f.of_loss && !op.has(kLoss)) score.add(1.5, "what it read was computed from a loss");
    if (!in_loss(f)) {
        if (is_log_of_probability(f))
            score.add(2.5, "the logarithm is of a probability that " + f.saturating + " had rounded to its limit");
        return;
    }
    score.add(1, f.met == FirstMet::Prediction
                     ? "what it made met a prediction before any parameter: it is part of the loss"
                     : "no parameter was read between this op and the loss: it is part of the loss");
    if (is_logarithm(op) && !f.saturating.empty()) {
        score.add(2, "the logarithm is of a value that " + f.saturating + " had rounded to its limit");
    } else if (is_logarithm(op)) {
        score.add(1.5, "");
    }
    if (divides_by_zero(f)) {
        score.add(1, "");
        if (of_a_sample(f)) {
            score.against(0.6);
        } else if (!f.operand_touched || !f.reduction.empty()) {
            score.add(0.5, "the denominator is a count or a sum that can be zero");
        }
    }
    if (f.mechanism == Mechanism::OVF && is_exponential(op)) score.add(0.6, "an exponential in the loss overflowed");
    if (f.narrow) score.against(1);
    if (f.mechanism == Mechanism::INDET && op.form == Form::Multiply) {
        score.add(1.5, "the loss multiplies an infinity by zero");
    } else if (f.mechanism == Mechanism::INDET) {
        score.against(1);
    }
    if (f.loss_growth > 0 || f.parameter_growth.times >= kDivergedGrowth) score.against(1.5);
}

}  // namespace numsan
