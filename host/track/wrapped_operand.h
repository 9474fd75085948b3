// Whether an operand is out of order because an integer that it came from had wrapped around, or was the rest of a
// fraction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "host/base/health.h"
#include "host/base/ids.h"
#include "host/track/lineage.h"

namespace numsan {

struct WrappedOperand {
    std::string evidence;
    std::string op;  ///< plain name of what wrapped around, or cut
    bool cut = false;
    IntegerType type = IntegerType::None;
};

/// Only where the value that was stored and the values of the operand agree, and what it should have been would have
/// been in order. `health` is the operand's; `overflows`: it is at fault for its size, else for its sign or a zero.
std::optional<WrappedOperand> wrapped_operand(const TensorView& operand, const Health& health, bool overflows,
                                              OpSeq seq, const Lineage& lineage);

}  // namespace numsan
