#include "interpose/torch/region_ops.h"

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <set>
#include <string>
#include <utility>

#include "interpose/torch/describe/each_tensor.h"
#include "interpose/torch/describe/tensor_view_of.h"
#include "interpose/torch/hook/hook_state.h"
#include "interpose/torch/own_ops.h"

namespace numsan {
namespace {

void bad_kinds(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack) {
    KindSet kinds = 0;
    if (const CoreApi* core = core_api(); core != nullptr) {
        for_each_tensor(stack->back(), [&](const at::Tensor& tensor) {
            TensorView view;
            if (view_of(tensor, 0, view)) kinds |= core->bad_kinds(view);
        });
    }
    stack->back() = int64_t(kinds);
}

void compiled_region(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack) {
    stack->resize(stack->size() - 2);
}

}  // namespace

void define_region_ops() {
    using c10::Argument;
    define_own_op<bad_kinds>("bad_kinds", {Argument("tensors", c10::ListType::create(c10::OptionalType::ofTensor()))},
                             {Argument("", c10::IntType::get())});
    const std::string a = "alias::a";
    Argument output("output", c10::TensorType::get(), std::nullopt, std::nullopt, false,
                    c10::AliasInfo(true, std::set<std::string>{a}, std::set<std::string>{a}));
    define_own_op<compiled_region>("compiled_region", {Argument("replayed", c10::TensorType::get()), std::move(output)},
                                   {}, c10::DispatchKey::CompositeExplicitAutograd);
    own_ops().push_back(c10::Dispatcher::singleton().registerImpl(
        {"numsan::compiled_region", ""}, c10::DispatchKey::Autograd, c10::KernelFunction::makeFallthrough(),
        std::nullopt, nullptr, "numsan"));
}

}  // namespace numsan
