#include "interpose/torch/debugger_ops.h"

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <utility>
#include <vector>

#include "interpose/torch/hold/held_call.h"
#include "interpose/torch/hook/op_call.h"
#include "interpose/torch/own_ops.h"

namespace numsan {
namespace {

using c10::Argument;
using c10::DispatchKey;
using c10::DispatchKeySet;

using Tensors = c10::List<at::Tensor>;

void tensors_at(const c10::OperatorHandle&, DispatchKeySet, torch::jit::Stack* stack) {
    const std::vector<int64_t> addresses = stack->back().toIntVector();
    Tensors tensors;
    for (const int64_t address : addresses) {
        auto* impl = reinterpret_cast<c10::TensorImpl*>(address);
        tensors.push_back(
            at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(impl)));
    }
    stack->back() = std::move(tensors);
}

void kept_at(const c10::OperatorHandle&, DispatchKeySet, torch::jit::Stack* stack) {
    const int64_t tensor = stack->back().toInt();
    stack->pop_back();
    const auto* call = reinterpret_cast<const HeldCall*>(stack->back().toInt());
    stack->back() = call->tensor(static_cast<int32_t>(tensor)).clone();
}

}  // namespace

void outside_ops(void (*run)(void* argument), void* argument) {
    DispatchKeySet included = c10::default_included_set;
    DispatchKeySet excluded = c10::default_excluded_set;
    if (c10::InferenceMode::is_enabled()) {
        included = included.remove(DispatchKey::ADInplaceOrView);
        excluded = excluded | c10::autograd_dispatch_keyset;
    }
    if (kHookKey != DispatchKey::Undefined) excluded = excluded.add(kHookKey);
    const c10::impl::ForceDispatchKeyGuard plain(included, excluded);
    run(argument);
}

void define_debugger_ops() {
    define_own_op<tensors_at>("tensors_at", {Argument("addresses", c10::ListType::ofInts())},
                              {Argument("", c10::ListType::ofTensors())});
    define_own_op<kept_at>("kept_at", {Argument("call", c10::IntType::get()), Argument("tensor", c10::IntType::get())},
                           {Argument("", c10::TensorType::get())});
}

}  // namespace numsan
