// Gradients that reach leaves wait for each other, so that a step has a few launches for them and not one each.
#pragma once

#include <atomic>
#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/base/device_scanner.h"
#include "host/base/ids.h"

namespace numsan {

/// When a scan of a gradient may wait, and until when: at most until its backward is over. A parameter that had no
/// gradient keeps this one, so that holding it costs nothing; of others little is held. Only in a program that has used
/// one queue up to its first optimizer step, and as long as it does: what frees or writes the memory in another queue
/// may not wait for a scan that comes after the program's own last use. [MT]
class GatheredGradients {
  public:
    /// `storages`: null: nothing waits. Both live as long as this.
    GatheredGradients(DeviceScanner& scanner, const StorageApi* storages) : scanner_(scanner), storages_(storages) {}

    /// DeviceScan::held_by of a gradient that reaches its leaf now. When it is handed over, held() follows.
    const StorageApi* hold(const DeviceQueue& queue) noexcept {
        return is_sole(queue) && has_stepped_.load(std::memory_order_relaxed) ? storages_ : nullptr;
    }
    /// `op`: the session's number of ops so far.
    void held(OpSeq op) noexcept {
        OpSeq none = OpSeq::None;
        since_.compare_exchange_strong(none, op, std::memory_order_relaxed);
    }

    /// At any other event of a device.
    void pass(const OpEvent& event, OpSeq op) noexcept {
        constexpr int64_t kPatience = 1024;  // ops: those behind are judged after the gradient
        const bool sole = is_sole(event.queue);
        const OpSeq since = since_.load(std::memory_order_relaxed);
        if (since != OpSeq::None && (!sole || event.graph_task == -1 || number(op) - number(since) > kPatience))
            flush();
    }

    /// An optimizer begins.
    void step() noexcept {
        has_stepped_.store(true, std::memory_order_relaxed);
        flush();
    }
    void flush() noexcept {
        if (since_.exchange(OpSeq::None, std::memory_order_relaxed) != OpSeq::None) scanner_.flush();
    }

  private:
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
    std::atomic<bool> has_stepped_{false};
    std::atomic<OpSeq> since_{OpSeq::None};
    std::atomic<uint64_t> sole_{0};  ///< the one queue that was seen
};

}  // namespace numsan
