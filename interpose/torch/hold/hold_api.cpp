#include "interpose/torch/hold/hold_api.h"

#include "interpose/torch/hold/forward_calls.h"
#include "interpose/torch/hold/held_call.h"

namespace numsan {

HoldApi hold_api(int64_t most_bytes) noexcept {
    hold_forward_calls(most_bytes);
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
