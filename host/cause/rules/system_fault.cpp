// N9: operands in domain and range, result not: a kernel, unwritten memory, a collective.
#include "host/cause/rules/rules.h"

namespace numsan {

void system_fault(const Features& f, Score& score) {
    if (f.phase == Phase::Comm) {
        score.add(Evidence::OfCollective, "it came out of a collective");
        if (f.narrow) score.add(Evidence::NarrowCollective);
    }
    if (f.mechanism == Mechanism::OPAQUE)
        score.add(f.phase == Phase::Backward ? Evidence::UnexplainedBackward : Evidence::Unexplained,
                  "no operand that was read explains the result");
    if (f.mechanism == Mechanism::UNINIT && !f.reads_parameter)
        score.add(Evidence::NeverWritten, "the memory had been allocated and never written");
    if (f.overwritten) score.add(Evidence::Overwritten, "what wrote it was not seen as an operator");
    if (f.mechanism == Mechanism::RACE || f.mechanism == Mechanism::HW) score.add(Evidence::RaceOrHardware);
}

}  // namespace numsan
