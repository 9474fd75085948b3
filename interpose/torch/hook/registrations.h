// Kernels on our dispatch key, handed to the dispatcher itself: torch::Library would parse each name and compare each
// signature with the schema that it was made from, at every start of a program.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <utility>
#include <vector>

#include "interpose/torch/hook/op_call.h"

namespace numsan {

/// Takes back what it has registered when it is destroyed. All members throw what torch throws: that another library
/// holds the key for one.
class Registrations {
  public:
    void fallback(c10::KernelFunction kernel) {
        made_.push_back(dispatcher().registerFallback(kHookKey, std::move(kernel), kFrom));
    }
    /// Of an operator that may be missing from this torch.
    void kernel(const c10::OperatorName& name, c10::KernelFunction kernel,
                std::optional<c10::impl::CppSignature> signature = std::nullopt) {
        made_.push_back(dispatcher().registerImpl(name, kHookKey, std::move(kernel), signature, nullptr, kFrom));
    }

  private:
    static constexpr const char* kFrom = "numsan";
    static c10::Dispatcher& dispatcher() { return c10::Dispatcher::singleton(); }

    std::vector<c10::RegistrationHandleRAII> made_;
};

}  // namespace numsan
