#include "interpose/torch/describe/device_queue_of.h"

#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <cstdint>
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

DeviceQueue device_queue_of(c10::DeviceType type, c10::DeviceIndex index) noexcept {
    // Backends that do not say: asked once, each answer is an exception.
    static std::atomic<uint64_t> silent{0};
    static_assert(static_cast<size_t>(c10::DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES) <= 64);
    const uint64_t bit = uint64_t(1) << static_cast<int>(type);
    DeviceQueue queue{nullptr, static_cast<int16_t>(index), false};
    if ((silent.load(std::memory_order_relaxed) & bit) != 0) return queue;
    try {
        const c10::impl::DeviceGuardImplInterface* guard = c10::impl::getDeviceGuardImpl(type);
        queue.known = native_handle(*guard, guard->getStream(c10::Device(type, index)), queue.stream);
    } catch (const std::exception&) {
        silent.fetch_or(bit, std::memory_order_relaxed);
    }
    return queue;
}

}  // namespace numsan
