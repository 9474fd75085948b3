// Entry point of libnumsan_torch.so, the only library that includes ATen. Built against the torch it is loaded into.
#include <exception>

#include "host/base/adapter_abi.h"
#include "interpose/torch/autograd_scopes.h"
#include "interpose/torch/debugger_ops.h"
#include "interpose/torch/describe/storage_watch.h"
#include "interpose/torch/describe/tensor_view_of.h"
#include "interpose/torch/describe/thread_pool.h"
#include "interpose/torch/hold/hold_api.h"
#include "interpose/torch/hook/dispatch_hook.h"
#include "interpose/torch/hook/hook_state.h"
#include "interpose/torch/hook/record_hook.h"
#include "interpose/torch/region_ops.h"

namespace numsan {
namespace {

void thread_start() {
    if (core_api() != nullptr) show_ops_of_this_thread();
}

void stop() { set_core_api(nullptr); }

AdapterApi g_api = {
    kAdapterAbi, thread_start, stop,   "fallback", storage_of, gradient_of, {watch, unwatch, pin, unpin},
    share_work,  {},           nullptr};

}  // namespace
}  // namespace numsan

extern "C" __attribute__((visibility("default"))) const numsan::AdapterApi* numsan_torch_attach(
    const numsan::CoreApi* core, const char** why) {
    using namespace numsan;
    if (core->abi != kAdapterAbi) {
        *why = "the adapter was built for another version of numsan";
        return nullptr;
    }
    try {
        const bool holds = core->held_bytes > 0;
        if (holds) g_api.hold = hold_api(*core);
        if (core->after_op != nullptr) {
            g_api.outside_ops = outside_ops;
            define_debugger_ops();
        }
        if (core->bad_kinds != nullptr) define_region_ops();
        if (!install_dispatch_hook(holds)) {  // arguments can be held as IValues only
            install_record_hook();
            g_api.hook = "record_function";
        }
        install_autograd_scopes(*core);
    } catch (const std::exception&) {
        *why = "torch refused the callbacks";
        return nullptr;
    }
    set_core_api(core);
    show_ops_of_this_thread();
    return &g_api;
}
