#include "interpose/torch/device_queue_of.h"

#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <exception>

namespace numsan {
namespace {

/// Null handle and false for a torch that has no such question.
template <class Guard>
bool native_handle(const Guard& guard, const c10::Stream& stream, void*& handle) {
    if constexpr (requires { guard.getStreamNativeHandle(stream); }) {
        handle = guard.getStreamNativeHandle(stream);
        return true;
    } else {
        return false;
    }
}

}  // namespace

DeviceQueue device_queue_of(c10::DeviceType type, c10::DeviceIndex index) noexcept try {
    DeviceQueue queue{nullptr, static_cast<int16_t>(index), false};
    const c10::impl::DeviceGuardImplInterface* guard = c10::impl::getDeviceGuardImpl(type);
    queue.known = native_handle(*guard, guard->getStream(c10::Device(type, index)), queue.stream);
    return queue;
} catch (const std::exception&) {
    return {nullptr, static_cast<int16_t>(index), false};
}

}  // namespace numsan
