// N7: growth through depth or recurrence, a normalisation that is missing, a softmax row with nothing left.
#include "host/cause/rules/rules.h"

namespace numsan {

void model_structure(const Features& f, Score& score) {
    if (f.phase == Phase::Optimizer || f.phase == Phase::Load || f.phase == Phase::Comm) return;
    const OpTraits& op = traits_of(f.op);
    // A derivative that subtracts or divides infinities belongs to a forward result that was as it should be.
    const bool of_derivative = f.phase == Phase::Backward && !op.is({Form::Softmax, Form::LogSoftmax, Form::LogSumExp});
    if (f.mechanism == Mechanism::INDET && !of_derivative) {
        if (op.is({Form::Softmax, Form::LogSoftmax, Form::Subtract, Form::LogSumExp, Form::Divide})) {
            score.add(Evidence::AllMasked, "every value this op normalises had been masked with infinity");
        } else {
            score.add(Evidence::InfinityMet, "an infinity that the program wrote met a value it is not defined with");
        }
    }
    if (f.phase != Phase::Forward || (f.hidden && !f.none_read)) return;
    const bool grew_now = f.mechanism == Mechanism::OVF && !f.near_zero &&
                          f.parameter_growth.times < kGrownByTraining && f.loss_growth == 0 && !large_from_the_start(f);
    if (grew_now && f.touched && f.parameter_start < kHugeParameter && !is_exponential(op)) {
        score.add(Evidence::OverflowWithoutGrowth, "the parameters are as large as at the start");
        if (f.growing_ops >= kGrowingOps || f.growth >= kGrowthInStep) {
            score.add(Evidence::GrewInStep,
                      "values grew " + number(f.growth, 3) + " times through the ops before it in this step");
        }
    }
    if (f.mechanism == Mechanism::OVF && is_exponential(op) && f.in_layer && !f.narrow)
        score.add(Evidence::ExponentialInLayer, "nothing bounds what the layer takes the exponential of");
    const bool one_a_channel = f.mechanism == Mechanism::DIV0 && op.form == Form::BatchNorm;
    const bool of_nothing = f.mechanism == Mechanism::DIV0 && f.none_read && f.touched;
    if (op.form == Form::Deviation || one_a_channel || of_nothing) {
        score.add(Evidence::TooFewValues, f.op + " of too few values is undefined");
    }
    if (divides_by_zero(f) && (f.touched || f.in_layer) && !in_loss(f)) {
        score.add(Evidence::DividesInModel);
        if (traits_of(f.reduction).is({Form::Deviation, Form::Extreme, Form::Mean})) {
            score.add(Evidence::NormalisesByZero,
                      "it normalises by a " + f.reduction +
                          (f.near_zero ? " that is close to zero here" : " that is zero here"));
        }
    }
    if (f.narrow) score.add(Evidence::NarrowNotStructure);
}

}  // namespace numsan
