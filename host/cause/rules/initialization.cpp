// N6: a parameter or a buffer was bad before it was first used.
#include "host/cause/rules/rules.h"

namespace numsan {

void initialization(const Features& f, Score& score) {
    if (f.mechanism == Mechanism::STATE) score.add(f.overwritten ? Evidence::StateAfterUpdate : Evidence::BadState);
    if (f.mechanism == Mechanism::UNINIT && f.reads_parameter)
        score.add(Evidence::UnwrittenParameter, "nothing wrote this parameter before it was read");
    if (f.mechanism == Mechanism::UNINIT && !f.reads_parameter)
        score.add(f.phase == Phase::Load ? Evidence::UnwrittenAtLoad : Evidence::UnwrittenMemory);
    if (f.first_update) score.add(Evidence::NoFirstValue, "it was to be updated in place, and had no first value");
    if (f.phase == Phase::Load && !f.overwritten)
        score.add(Evidence::MadeAtLoad, "it became a parameter's value before any training did");
    if (f.reads_parameter && f.parameter_max >= kLargeParameter && f.parameter_growth.times < kNotGrown &&
        f.phase == Phase::Forward) {
        score.add(Evidence::LargeParameter, "it read a parameter of magnitude " + number(f.parameter_max, 3) +
                                                " that training had not made grow");
    }
    const bool grew = f.parameter_growth.times >= kGrownByTraining;
    // A weight is often read through a view of it, beside a bias that is the parameter itself.
    const bool large = f.reads_parameter && f.parameter_max >= kLargeParameter;
    if (f.mechanism == Mechanism::OVF && !grew && !large && f.parameter_start >= kHugeParameter &&
        f.phase == Phase::Forward) {
        score.add(Evidence::HugeParameter, "a parameter of magnitude " + number(f.parameter_start, 3) +
                                               " was there before training made any grow");
    }
    if (divides_by_zero(f) && f.operand_is_parameter && f.phase == Phase::Forward)
        score.add(Evidence::DividesByParameter,
                  "it divided by a parameter: training hardly ever makes one exactly zero, what set it up does");
    if (f.mechanism == Mechanism::OVF && !grew && !large && large_from_the_start(f)) {
        score.add(Evidence::WeightGain, "the weight it read makes values about " + number(f.weight_gain, 3) +
                                            " times larger, and training had not made it grow");
    }
    const OpTraits& op = traits_of(f.op);
    const bool beyond_exp =
        f.mechanism == Mechanism::OVF && !f.narrow && (is_exponential(op) || op.form == Form::Power);
    if ((f.mechanism == Mechanism::DOM || beyond_exp) && f.operand_is_parameter && f.phase == Phase::Forward &&
        f.step == 0)
        score.add(Evidence::ParameterAsSetUp, "it read a parameter as it was set up, before any step had changed it");
    if (f.phase == Phase::Data && f.step == 0 && f.gradients_off) score.add(Evidence::DataWithoutGradients);
}

}  // namespace numsan
