// N2: an operand out of the operation's domain or range, in the model or a helper.
#include "host/cause/rules/rules.h"

namespace numsan {

void unsafe_operation(const Features& f, Score& score) {
    if (f.phase != Phase::Forward) return;
    const OpTraits& op = traits_of(f.op);
    if (f.mechanism == Mechanism::DOM) {
        score.add(1.5, f.op + " was given a finite operand outside its domain");
        if (op.is(
                {Form::ArcSine, Form::ArcCosh, Form::ArcTanh, Form::Root, Form::InverseRoot, Form::Power, Form::Logit}))
            score.add(1.2, "");
        if (f.saturating.empty()) score.add(0.5, "");
    }
    if (divides_by_zero(f))
        score.add(0.8, f.op + (f.near_zero ? " had a number near zero to divide by" : " had a zero to divide by"));
    if (f.mechanism == Mechanism::OVF && (is_exponential(op) || op.is({Form::Hyperbolic, Form::Power}))) {
        score.add(1.3, f.op + " of " + number(f.operand_max, 3) + " is beyond the type's largest value");
    }
    if (!in_loss(f) && f.loss_known) score.add(0.7, "");
    if (!f.touched && !f.in_module) score.against(1);
    if (f.narrow || f.hidden || !f.wrapped.empty()) score.against(1.5);
}

}  // namespace numsan
