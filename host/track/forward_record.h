// The op that made an autograd node, found by the node's number.
#pragma once

#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/base/ids.h"
#include "host/stacks/range_path.h"
#include "host/stacks/stack_source.h"
#include "host/track/birth_id.h"

namespace numsan {

struct ForwardRecord {
    const OpInfo* op = nullptr;
    StackId stack = 0;
    BirthId birth = 0;        ///< the bad value this op made itself, if it did
    OpSeq seq = OpSeq::None;  ///< its number in program order
    RangePath ranges{};
};

}  // namespace numsan
