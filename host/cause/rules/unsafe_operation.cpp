// N2: an operand out of the operation's domain or range, in the model or a helper.
#include "host/cause/rules/rules.h"

namespace numsan {

void unsafe_operation(const Features& f, Score& score) {
    if (f.phase == Phase::Data && divides_by_zero(f) && !f.reduction.empty())
        score.add(Evidence::DataNormalises, "it divides by a " + f.reduction + ", which is zero for some legal values");
    if (f.phase != Phase::Forward) return;
    const OpTraits& op = traits_of(f.op);
    if (f.mechanism == Mechanism::DOM) {
        score.add(Evidence::OutsideDomain, f.op + " was given a finite operand outside its domain");
        if (op.is(
                {Form::ArcSine, Form::ArcCosh, Form::ArcTanh, Form::Root, Form::InverseRoot, Form::Power, Form::Logit}))
            score.add(Evidence::DomainOfRoot);
        if (f.rounded.op.empty()) score.add(Evidence::DomainUnrounded);
    }
    if (divides_by_zero(f))
        score.add(Evidence::DividesByZero,
                  f.op + (f.near_zero ? " had a number near zero to divide by" : " had a zero to divide by"));
    if (f.mechanism == Mechanism::OVF && (is_exponential(op) || op.is({Form::Hyperbolic, Form::Power}))) {
        score.add(Evidence::BeyondExponential,
                  f.op + " of " + number(f.operand_max, 3) + " is beyond the type's largest value");
    }
    if (!in_loss(f) && f.loss_known) score.add(Evidence::BeforeLoss);
    if (!f.touched && !f.in_module) score.add(Evidence::UntouchedOutsideModules);
    if (f.narrow || f.hidden || !f.wrapped.empty()) score.add(Evidence::NarrowHiddenOrWrapped);
}

}  // namespace numsan
