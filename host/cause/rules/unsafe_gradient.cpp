// N3: the forward value is fine, its derivative is not.
#include "host/cause/rules/rules.h"

namespace numsan {

void unsafe_gradient(const Features& f, Score& score) {
    if (f.hidden) {
        score.add(Evidence::HiddenForward,
                  "the forward value was masked away; its derivative is multiplied with it and is not finite");
        if (f.none_read) score.add(Evidence::HiddenOfNothing);
        if (f.narrow && f.mechanism == Mechanism::OVF)
            score.add(Evidence::HiddenNarrowOverflow);  // the type's, whatever hid it
        return;
    }
    if (f.phase != Phase::Backward) return;
    if (f.op == kCompiledRegion)  // its ops are not seen, and the mechanism is a guess
        return score.add(Evidence::BackwardOverflow, "the value was finite until the backward pass");
    if (f.mechanism == Mechanism::SING)
        score.add(Evidence::SingularDerivative,
                  "every operand of the forward op was finite; its derivative divides by zero");
    if (f.own_backward) score.add(Evidence::OwnBackward, "the program's own backward function made it");
    if (f.mechanism == Mechanism::DOM || f.mechanism == Mechanism::DIV0)
        score.add(Evidence::DerivativeDomain, "the derivative's formula left its domain");
    if (f.mechanism == Mechanism::OPAQUE || f.mechanism == Mechanism::OVF)
        score.add(Evidence::BackwardOverflow, "the value was finite until the backward pass");
    if (f.mechanism == Mechanism::HYPER) score.add(Evidence::BackwardDiverged);
    if (f.mechanism == Mechanism::INDET)
        score.add(Evidence::BackwardIndeterminate, "the derivative is an indeterminate form");
    if (f.narrow) score.add(Evidence::BackwardNarrow);
}

}  // namespace numsan
