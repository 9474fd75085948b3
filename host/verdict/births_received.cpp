// Values that came from another process through a collective.
#include <string>

#include "host/cause/measure.h"
#include "host/verdict/births.h"

namespace numsan {
namespace {

/// Whose value a received one is, in words; empty where that is not known.
std::string sender_of(const Ledger::Received& received, const TensorView& tensor, int64_t first_bad) {
    const bool whole = tensor.numel * static_cast<int64_t>(info(tensor.dtype).element_bytes()) == tensor.storage_bytes;
    int64_t rank = received.from;
    if (received.share > 0 && whole && first_bad >= 0) rank = first_bad / received.share;
    return rank < 0 ? "" : " from rank " + std::to_string(rank) + " of its group";
}

}  // namespace

/// No op of this process wrote it: it came from another, or from the arithmetic on the way.
void Births::came_by_collective(Birth& birth, const Ledger::Received& received, Kind kind, const TensorView& tensor,
                                int64_t first_bad) {
    birth.op = received.op->name;
    birth.stack = received.stack;
    birth.seq = received.seq;
    birth.step = received.step;
    birth.node.clear();
    birth.phase = Phase::Comm;
    const double largest = magnitude_value(info(tensor.dtype).exponent_mask() - 1, tensor.dtype);
    if (kind != kNaN && received.sent * 2 > largest) {
        birth.mechanism = Mechanism::OVF;
        birth.evidence.push_back("this process put in values up to " + std::to_string(received.sent) +
                                 ": twice that is beyond " + info(tensor.dtype).name);
    } else {
        birth.mechanism = Mechanism::DATA;
        birth.evidence.push_back("received" + sender_of(received, tensor, first_bad) +
                                 ": what this process put in was finite");
    }
}

}  // namespace numsan
