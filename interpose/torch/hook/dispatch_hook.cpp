#include "interpose/torch/hook/dispatch_hook.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "interpose/torch/describe/op_registry.h"
#include "interpose/torch/hook/boxed_call.h"
#include "interpose/torch/hook/hook_state.h"
#include "interpose/torch/hook/listeners.h"
#include "interpose/torch/hook/op_call.h"
#include "interpose/torch/hook/raised_error.h"
#include "interpose/torch/hook/record_hook.h"
#include "interpose/torch/hook/registrations.h"
#include "interpose/torch/hook/typed_hook.h"

namespace numsan {
namespace {

/// They live as long as the process. A checker of leaks finds them here.
[[gnu::used]] Registrations* g_registrations = nullptr;

c10::ArrayRef<c10::IValue> last(const torch::jit::Stack& stack, size_t count) {
    // braces would make a list of two values
    return c10::ArrayRef<c10::IValue>(stack.data() + (stack.size() - count), count);
}

void fallback(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const c10::DispatchKeySet below = behind_hook(keys);
    const CoreApi* core = core_api();
    const Operator* op = nullptr;
    std::optional<BoxedCall> call;
    if (core != nullptr) {
        try {
            op = &operator_of(handle);
            if (op->info.op_class != OpClass::Composite && op->info.op_class != OpClass::View) {
                call.emplace(*op);
                call->take(*core, last(*stack, op->arguments));
            }
        } catch (const std::exception&) {
            call.reset();
            core->fail("an operator could not be described");
        }
    }
    if (!call.has_value()) {
        const SubclassCalls shown(core != nullptr && is_for_subclass(keys));
        handle.redispatchBoxed(below, stack);
        return;
    }
    const bool for_subclass = is_for_subclass(keys);
    if (for_subclass) call->show_inner_ops();
    try {
        const HideInnerOps hide(ThreadPlaces::mine(), op->hides_inner_ops && !for_subclass);
        const SubclassCalls shown(for_subclass);
        const QuietScopes quiet(op->info.op_class == OpClass::Collective);
        handle.redispatchBoxed(below, stack);
    } catch (const std::exception&) {
        if (!for_subclass) call->report_failure(*core);
        throw;
    }
    try {
        call->report(*core, last(*stack, stack->size() >= op->returns ? op->returns : 0));
    } catch (const std::exception&) {
        core->fail("an operator could not be described");
    }
    if (core->take_error != nullptr) [[unlikely]]
        throw_error_of(*core);
}

/// Of a name with its overload behind a dot.
c10::OperatorName name_of(const std::string& full) {
    const size_t dot = full.find('.');
    return dot == full.npos ? c10::OperatorName(full, "")
                            : c10::OperatorName(full.substr(0, dot), full.substr(dot + 1));
}

}  // namespace

void show_ops_of_this_thread() {
    if (dispatch_hook_installed()) c10::impl::tls_set_dispatch_key_included(kHookKey, true);
}

bool install_dispatch_hook(bool boxed) {
    if (kHookKey == c10::DispatchKey::Undefined) return false;
    try {
        auto made = std::make_unique<Registrations>();
        made->fallback(c10::KernelFunction::makeFromBoxedFunction<&fallback>());
#define NUMSAN_FALLTHROUGH(name) made->kernel(name_of("aten::" name), c10::KernelFunction::makeFallthrough());
#include "interpose/torch/describe/fallthrough.def"
#undef NUMSAN_FALLTHROUGH
        if (!boxed) register_typed_hooks(*made);
        g_registrations = made.release();
    } catch (const std::exception&) {
        return false;  // another library has a fallback on the key; ours are taken back
    }
    g_dispatch_hook.store(true, std::memory_order_relaxed);
    return true;
}

}  // namespace numsan
