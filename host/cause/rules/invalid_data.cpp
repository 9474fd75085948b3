// N1: the value, or the operand that made it, came with the batch and no parameter had touched it.
#include "host/cause/rules/rules.h"

namespace numsan {

void invalid_data(const Features& f, Score& score) {
    if (f.phase == Phase::Optimizer || f.phase == Phase::Comm || f.phase == Phase::Load) return;
    if (f.mechanism == Mechanism::DATA && traits_of(f.op).form == Form::CtcLoss) {
        score.add(Evidence::TargetDoesNotFit, "a target does not fit its input");
    } else if (f.mechanism == Mechanism::DATA && !f.bad_number) {
        score.add(Evidence::CameWithBatch, f.written_over
                                               ? "no parameter had touched the tensor"
                                               : "the value arrived with the batch: no op was seen to make it");
    }
    if (f.wrong_target != 0)
        score.add(Evidence::TargetOutOfRange,
                  "the loss has no lower bound for targets outside 0 to 1, and the magnitude of one is " +
                      number(f.wrong_target, 6));
    if (f.phase == Phase::Data)
        score.add(Evidence::MadeInData,
                  f.mechanism == Mechanism::DATA
                      ? ""
                      : "it was made outside every module from values that no parameter had touched");
    const bool own_fault = f.mechanism == Mechanism::UNINIT || f.mechanism == Mechanism::DATA ||
                           (f.mechanism == Mechanism::OVF && !f.near_zero);
    if (f.phase == Phase::Forward && !f.touched && !own_fault) {
        score.add(f.met == FirstMet::Prediction ? Evidence::UntouchedMetPrediction : Evidence::Untouched,
                  "what the op read was not computed from any parameter");
    }
    // A denominator or an argument that is the batch's own, not a count or a weight sum made for a loss.
    if (f.phase == Phase::Forward && f.touched && f.operand_known && !f.operand_touched &&
        (f.reduction.empty() || of_a_sample(f)) && (divides_by_zero(f) || f.mechanism == Mechanism::DOM)) {
        score.add(Evidence::OperandOfBatch,
                  "the operand at fault was not computed from any parameter: it is the batch's");
    }
    // Zero is the edge of the domain, and a legal target; what is below it cannot be meant.
    if (f.phase == Phase::Forward && f.mechanism == Mechanism::DOM && !f.operand_touched && f.operand_known &&
        is_logarithm(traits_of(f.op)) && (f.kind & kNaN) != 0 && !f.operand_constant)
        score.add(Evidence::LogOfNegativeData, "the logarithm is of a negative number that no parameter had touched");
    if (of_a_setting(f)) score.add(Evidence::SettingNotData);
    if (of_constants(f)) score.add(Evidence::ConstantNotData);
    if (divides_by_zero(f) && f.by_number) score.add(Evidence::NumberNotData);
    if (f.narrow) score.add(Evidence::NarrowNotData);
    if (f.mechanism == Mechanism::INDET) score.add(Evidence::IndeterminateNotData);
}

}  // namespace numsan
