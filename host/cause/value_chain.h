// The way of a bad value through operators: what was computed before its birth, and what handed it on until it escaped.
#pragma once

#include <cstddef>
#include <vector>

#include "host/cause/birth.h"
#include "host/finding/chain_link.h"
#include "host/track/lineage.h"

namespace numsan {

/// In program order, at most six operators before the birth and twelve after it. Before it, of what each operator read
/// the part that was written last is followed, of a backward birth from the forward operator on. After it, each link
/// read what the one before it wrote, up to the last bad result before op `escape_seq`. Read from what `lineage`
/// remembers, the last writes of all operators: where it has forgotten one, the chain ends. `steps`: of history.
std::vector<ChainLink> value_chain(const Birth& birth, const Lineage& lineage, OpSeq escape_seq, size_t steps,
                                   const StackSource* stacks);

}  // namespace numsan
