#include "interpose/torch/hold/hold_api.h"

#include "interpose/torch/hold/forward_calls.h"
#include "interpose/torch/hold/held_call.h"
#include "interpose/torch/hold/tensor_copy.h"

namespace numsan {

HoldApi hold_api(const CoreApi& core) noexcept {
    hold_forward_calls(core.held_bytes);
    read_devices_by(core.read_device);
    HoldApi api{};
    api.keep = []() -> HeldCall* {
        HeldCall* call = CurrentHold::get();
        if (call == nullptr || !call->own()) return nullptr;
        call->add_reference();
        return call;
    };
    api.keep_forward = keep_forward;
    api.drop = [](HeldCall* held) { held->drop(); };
    api.bytes = [](const HeldCall* held) { return held->bytes(); };
    api.view = [](const HeldCall* held) { return &held->view(); };
    api.stop = HeldCall::stop;
    return api;
}

}  // namespace numsan
