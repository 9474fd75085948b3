// Operators of numsan's own in torch's dispatcher, which Python code of numsan's calls.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <c10/core/DispatchKey.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace numsan {

/// They live as long as the process: a checker of leaks finds them here. May throw.
inline std::vector<c10::RegistrationHandleRAII>& own_ops() {
    static auto* const made = new std::vector<c10::RegistrationHandleRAII>;
    return *made;
}

using BoxedKernel = void(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack*);

/// torch.ops.numsan.NAME, which `kernel` computes on any device. `key` says from where on: in the place of autograd,
/// unseen, or below it, as an operator that the hook sees.
template <BoxedKernel* kernel>
void define_own_op(const char* name, std::vector<c10::Argument> arguments, std::vector<c10::Argument> returns,
                   c10::DispatchKey key = c10::DispatchKey::CompositeImplicitAutograd) {
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    const std::string full = std::string("numsan::") + name;
    own_ops().push_back(
        dispatcher.registerDef(c10::FunctionSchema(full, "", std::move(arguments), std::move(returns)), "numsan"));
    own_ops().push_back(dispatcher.registerImpl({full, ""}, key, c10::KernelFunction::makeFromBoxedFunction<kernel>(),
                                                std::nullopt, nullptr, "numsan"));
}

}  // namespace numsan
