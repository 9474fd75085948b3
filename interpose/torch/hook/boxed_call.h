// One call of an operator whose arguments and results are IValues: the boxed fallback's, the record function's.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <cstddef>

#include "interpose/torch/describe/op_registry.h"
#include "interpose/torch/hold/held_call.h"
#include "interpose/torch/hook/op_call.h"

namespace numsan {

/// Keeps the operands of one call alive while it runs, in buffers of the calling thread that are used as stacks: calls
/// of a thread must end in the reverse order of their beginnings.
class BoxedCall {
  public:
    explicit BoxedCall(const Operator& op);
    ~BoxedCall();
    BoxedCall(const BoxedCall&) = delete;
    BoxedCall& operator=(const BoxedCall&) = delete;

    /// Before the op runs; the core hears what it must hear before. Returns the dispatch keys of all operands. May
    /// throw.
    c10::DispatchKeySet take(const CoreApi& core, c10::ArrayRef<c10::IValue> arguments);

    /// The ops that it calls are events of their own, so that results which cannot be looked at are no blind spot.
    void show_inner_ops() { call_.show_inner_ops(); }

    /// After it ran. `sequence` as in OpCall::report. May throw.
    void report(const CoreApi& core, c10::ArrayRef<c10::IValue> returns, uint64_t sequence = OpCall::kLastNode);

    /// In place of report(), after the op threw.
    void report_failure(const CoreApi& core) noexcept;

  private:
    void show_operands();

    const Operator& op_;
    const size_t operands_, written_;  ///< where this call's begin in the buffers
    uint64_t internal_ = 0;            ///< bits of the operands that internals.def names
    HeldCall* held_ = nullptr;         ///< where CoreApi::held_bytes asks for it
    OpCall call_;
};

}  // namespace numsan
