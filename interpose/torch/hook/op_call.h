// One call of an operator as the hook describes it to the core: operands, results, numbers. Shared by the boxed and the
// typed hook.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/Scalar.h>

#include <cstddef>
#include <cstdint>

#include "host/base/adapter_abi.h"
#include "interpose/torch/describe/hook_key.h"
#include "interpose/torch/describe/op_registry.h"
#include "interpose/torch/hook/thread_places.h"

namespace numsan {

/// The keys an operator is called on with: everything behind ours.
inline c10::DispatchKeySet behind_hook(c10::DispatchKeySet keys) {
    return keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kHookKey);
}

/// Excludes the key on this thread while an op runs, so that the ops it is made of are not events; not even when
/// the thread's ops are shown meanwhile. Leaves the thread as it was.
class HideInnerOps {
  public:
    HideInnerOps(const ThreadPlaces& places, bool hide) : keys_(hide ? &places.keys() : nullptr) {
        if (keys_ == nullptr) return;
        const c10::DispatchKeySet excluded = keys_->excluded();
        if (excluded.has(kHookKey)) {
            keys_ = nullptr;
        } else {
            keys_->set_excluded(excluded.add(kHookKey));
        }
    }
    ~HideInnerOps() {
        if (keys_ != nullptr) keys_->set_excluded(keys_->excluded().remove(kHookKey));
    }
    HideInnerOps(const HideInnerOps&) = delete;
    HideInnerOps& operator=(const HideInnerOps&) = delete;

  private:
    c10::impl::PODLocalDispatchKeySet* keys_;  ///< this thread's
};

/// Collects views in the caller's buffers, which must have room for every call of operand(), and of returned() and
/// written(). All tensors are shown after the op ran, and must live until report() has returned.
class OpCall {
  public:
    OpCall(const Operator& op, ThreadPlaces& places) : op_(op), places_(places) {}

    /// Before the first tensor.
    void use(TensorView* inputs, TensorView* outputs) {
        inputs_ = inputs;
        outputs_ = outputs;
    }

    /// The ops that it calls are events of their own: results that cannot be looked at are no blind spot.
    void show_inner_ops() { inner_ops_shown_ = true; }

    /// The process group that a collective was called on; null: not known.
    void use(const Communicator* communicator) { communicator_ = communicator; }

    void number(double value);
    void number(int64_t value) { keep(static_cast<double>(value)); }
    void number(const c10::Scalar& value);

    /// `internal`: see internals.def.
    void operand(const at::Tensor& tensor, size_t position, bool internal);
    void returned(const at::Tensor& tensor, size_t position) { output(tensor, kReturned, position); }
    void written(const at::Tensor& tensor, size_t position) { output(tensor, kWritten, op_.returns + position); }

    /// `sequence`: number of the autograd node that the op made, ~0 for none. Below autograd it is that of the thread's
    /// last node.
    void report(const CoreApi& core, uint64_t sequence = kLastNode);

    /// The number of the node as an event has it; ~0: there is none.
    uint64_t node_of(uint64_t sequence) const;

    /// In place of report(), of an op that threw, after its operands were shown.
    void report_failure(const CoreApi& core);

    static constexpr uint64_t kLastNode = ~uint64_t(1);

  private:
    static constexpr int32_t kMaxScalars = 8;
    static constexpr int32_t kMaxSkipped = 8;

    void keep(double value) {
        if (scalar_count_ < kMaxScalars) scalars_[scalar_count_++] = value;
    }
    bool view_of_output(const at::Tensor& tensor, uint32_t flag, TensorView& view) const;
    void output(const at::Tensor& tensor, uint32_t flag, size_t position);
    void skip(const at::Tensor& tensor);

    const Operator& op_;
    ThreadPlaces& places_;  ///< the calling thread's
    TensorView* inputs_ = nullptr;
    TensorView* outputs_ = nullptr;
    int32_t input_count_ = 0;
    int32_t output_count_ = 0;
    int32_t returned_count_ = 0;
    int32_t scalar_count_ = 0;
    int32_t skipped_count_ = 0;
    bool infinite_scalar_ = false;
    const c10::TensorImpl* on_device_ = nullptr;  ///< a tensor that is on a device; a result, where one is
    bool inner_ops_shown_ = false;
    const Communicator* communicator_ = nullptr;
    double scalars_[kMaxScalars];
    const void* skipped_[kMaxSkipped];  ///< so that a tensor both returned and written counts once
};

}  // namespace numsan
