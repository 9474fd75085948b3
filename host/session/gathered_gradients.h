// Gradients that reach leaves wait for each other, so that a step has a few launches for them and not one each.
#pragma once

#include <atomic>
#include <cstdint>

#include "host/core/adapter_abi.h"
#include "host/core/device_scanner.h"

namespace numsan {

/// When a scan of a gradient may wait, and until when. A parameter keeps its gradient, so holding the memory costs
/// nothing. Only while the program uses one queue: what frees the memory in another may not wait for a scan that comes
/// later than the program's own last use. [MT]
class GatheredGradients {
  public:
    /// `storages`: null: nothing waits. Both live as long as this.
    GatheredGradients(DeviceScanner& scanner, const StorageApi* storages) : scanner_(scanner), storages_(storages) {}

    /// DeviceScan::held_by of a gradient that reaches its leaf now; `op`: the session's number of ops so far.
    const StorageApi* hold(const DeviceQueue& queue, int64_t op) noexcept {
        if (storages_ == nullptr || !is_sole(queue)) return nullptr;
        int64_t none = kNone;
        since_.compare_exchange_strong(none, op, std::memory_order_relaxed);
        return storages_;
    }

    /// Before any other event of a device.
    void pass(const DeviceQueue& queue, int64_t op) noexcept {
        constexpr int64_t kPatience = 1024;  // ops: those behind are judged after the gradient
        const bool sole = is_sole(queue);
        const int64_t since = since_.load(std::memory_order_relaxed);
        if (since != kNone && (!sole || op - since > kPatience)) flush();
    }

    /// An optimizer begins, or gradients are let go.
    void flush() noexcept {
        if (since_.exchange(kNone, std::memory_order_relaxed) != kNone) scanner_.flush();
    }

  private:
    static constexpr int64_t kNone = -1;
    static constexpr uint64_t kMany = ~uint64_t(0);

    bool is_sole(const DeviceQueue& queue) noexcept {
        if (!queue.known) return sole_.load(std::memory_order_relaxed) != kMany;
        constexpr uint64_t kDevices = 1 << 8;  // a handle is an address: below 2^56
        const uint64_t key = reinterpret_cast<uintptr_t>(queue.stream) * kDevices + uint64_t(uint8_t(queue.device)) + 1;
        uint64_t seen = sole_.load(std::memory_order_relaxed);
        if (seen == key) return true;
        if (seen == 0 && sole_.compare_exchange_strong(seen, key, std::memory_order_relaxed)) return true;
        if (seen == key) return true;
        sole_.store(kMany, std::memory_order_relaxed);
        return false;
    }

    DeviceScanner& scanner_;
    const StorageApi* const storages_;
    std::atomic<int64_t> since_{kNone};
    std::atomic<uint64_t> sole_{0};  ///< the one queue that was seen
};

}  // namespace numsan
