// An operator and the stack it ran on: what every pass of a loop has in common.
#pragma once

#include <compare>

#include "host/base/adapter_abi.h"
#include "host/stacks/stack_source.h"

namespace numsan {

struct OpSite {
    const OpInfo* op = nullptr;
    StackId stack = 0;

    auto operator<=>(const OpSite&) const = default;
};

}  // namespace numsan
