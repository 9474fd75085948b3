// N4: the loss is written in an unstable or wrong way.
#include "host/cause/rules/rules.h"

namespace numsan {

void loss_computation(const Features& f, Score& score) {
    if (f.phase != Phase::Forward) return;
    if (f.hidden) {
        const bool too_large_for_type = f.narrow && f.mechanism == Mechanism::OVF;
        if (in_loss(f) && !too_large_for_type)
            score.add(Evidence::HiddenInLoss, "the forward value is part of the loss");
        return;
    }
    const OpTraits& op = traits_of(f.op);
    if (op.has(kLoss)) {
        if (f.mechanism != Mechanism::OVF) score.add(Evidence::OpIsLoss, f.op + " is a loss");
    }
    if (f.of_loss && !op.has(kLoss)) score.add(Evidence::ReadLoss, "what it read was computed from a loss");
    if (!in_loss(f)) {
        if (is_log_of_probability(f))
            score.add(Evidence::LogOfProbability,
                      "the logarithm is of a probability that " + f.rounded.op + " had rounded to its limit");
        return;
    }
    score.add(Evidence::InLoss, f.met == FirstMet::Prediction
                                    ? "what it made met a prediction before any parameter: it is part of the loss"
                                    : "no parameter was read between this op and the loss: it is part of the loss");
    if (is_logarithm(op) && !f.rounded.op.empty()) {
        score.add(Evidence::LogOfRounded,
                  "the logarithm is of a value that " + f.rounded.op + " had rounded to its limit");
    } else if (is_logarithm(op)) {
        score.add(Evidence::LogInLoss);
    }
    if (f.mechanism == Mechanism::DOM && f.touched && op.is({Form::Root, Form::InverseRoot, Form::Power}))
        score.add(Evidence::RootInLoss);
    if (divides_by_zero(f)) {
        score.add(Evidence::DividesInLoss);
        if (of_a_sample(f)) {
            score.add(Evidence::DividesBySample);
        } else if (!f.operand_touched || !f.reduction.empty()) {
            score.add(Evidence::DividesByCount, "the denominator is a count or a sum that can be zero");
        }
    }
    if (f.mechanism == Mechanism::OVF && is_exponential(op))
        score.add(Evidence::ExponentialInLoss, "an exponential in the loss overflowed");
    if (f.narrow) score.add(Evidence::NarrowLoss);
    if (f.mechanism == Mechanism::INDET && op.form == Form::Multiply) {
        score.add(Evidence::InfinityTimesZero, "the loss multiplies an infinity by zero");
    } else if (f.mechanism == Mechanism::INDET) {
        score.add(Evidence::IndeterminateInLoss);
    }
    if (f.loss_growth > 0 || f.parameter_growth.times >= kDivergedGrowth) score.add(Evidence::DivergedBeforeLoss);
}

}  // namespace numsan
