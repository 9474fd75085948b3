// OperatorHandle -> OpInfo and what the hook must know of its schema. Made once per operator, found by a lock-free
// table.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "host/base/adapter_abi.h"

namespace numsan {

/// What every call asks comes first, on one cache line.
struct alignas(64) Operator {
    OpInfo info;
    uint64_t internal_arguments = 0;  ///< bits of positions: see internals.def
    uint64_t internal_returns = 0;
    uint64_t written_arguments = 0;  ///< bits of `written`, of the first 64 positions
    uint16_t arguments = 0;
    uint16_t returns = 0;
    bool element_wise = false;    ///< see element_wise.def
    bool hides_inner_ops = true;  ///< inner ops of this op are not events of their own
    bool draws = false;           ///< random numbers, of a generator
    int8_t group_argument = -1;   ///< position of the process group of a collective; -1: it has none

    /// identity; an operator that is defined anew may have the address of an old one
    const c10::FunctionSchema* schema = nullptr;
    std::string name;
    std::string overload;
    std::vector<uint16_t> written;   ///< argument positions that the op writes, ascending
    c10::DispatchKeySet calls_anew;  ///< with one of these in its set a thread's call is not yet the one that computes
    const Operator* next = nullptr;  ///< in the registry
};
static_assert(offsetof(Operator, schema) == 64);

/// [MT] Takes no lock. The result lives forever. May throw for an operator not seen before: std::bad_alloc.
const Operator& operator_of(const c10::OperatorHandle& handle);

}  // namespace numsan
