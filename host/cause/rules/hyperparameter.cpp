// N5: a number in the configuration: learning rate, momentum, epsilon, schedule, decay.
#include "host/cause/growth.h"
#include "host/cause/rules/rules.h"

namespace numsan {

void hyperparameter(const Features& f, Score& score) {
    if (f.phase == Phase::Load || f.phase == Phase::Comm) return;
    const bool given = f.mechanism == Mechanism::DATA && f.bad_number;
    if (f.phase == Phase::Optimizer && f.met != FirstMet::Update) {
        if (given)
            score.add(Evidence::OptimizerGivenBadNumber,
                      "a rate, a factor or a bound that the optimizer was given is not finite");
        score.add(Evidence::MadeInOptimizer,
                  given ? "" : "it was made inside the optimizer's arithmetic, out of finite gradients");
        if (divides_by_zero(f))
            score.add(Evidence::UpdateDividesByZero,
                      "the update divided by zero: nothing keeps the denominator positive");
        if (f.narrow) score.add(Evidence::UpdateNarrow);
        return;
    }
    if (given)
        score.add(Evidence::GivenBadNumber, "a number of the program's own is not finite: no tensor was bad before");
    if (divides_by_zero(f) && f.by_number)
        score.add(Evidence::DividesByNumber, "the divisor is a number of the program's own that is zero");
    if (of_constants(f))
        score.add(Evidence::ConstantOperand,
                  "the operand at fault was made of numbers of the program alone: no batch and no "
                  "parameter went into it");
    if (of_a_setting(f)) score.add(Evidence::Setting, "it went into the update of a parameter and came from no loss");
    if (f.mechanism == Mechanism::HYPER) score.add(Evidence::RunDiverged);
    // The mechanism's own evidence says which of the two it was.
    const bool said = f.mechanism == Mechanism::HYPER;
    const double grown = f.parameter_growth.times;
    if (grown >= kGrownByTraining) {
        score.add(grown >= kDivergedGrowth ? Evidence::ParametersDiverged : Evidence::ParametersGrew,
                  said && f.loss_growth == 0 ? "" : said_of(f.parameter_growth));
    }
    if (steps_of_whole_weights(f) && grown < kDivergedGrowth) {
        score.add(
            Evidence::StepsOfWholeWeights,
            "a step has moved a parameter, on average, by more than half of what the largest weight was at the start");
    }
    if (f.loss_growth > 0) score.add(Evidence::LossGrew, said ? "" : said_of_loss_growth(f.loss_growth));
    const bool number = given || (divides_by_zero(f) && f.by_number) || of_constants(f) || of_a_setting(f);
    if (f.step == 0 && !number) score.add(Evidence::FirstStepNotSetting);
}

}  // namespace numsan
