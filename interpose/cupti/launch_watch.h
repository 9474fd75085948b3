// Kernel launches as CUPTI reports them: the Callback API only, the driver's domain, launches only. Never the Activity
// API, whose buffers belong to a profiler. CUPTI is opened at run time; there is room for one subscriber in a process,
// who gives way to others.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "interpose/cupti/cupti_abi.h"
#include "interpose/cupti/launch_counter.h"

namespace numsan {

/// One for the process, never destroyed. [MT] No lock is held over a fork: in a forked child, which has no CUDA, every
/// call but after_fork_in_child() does nothing.
class LaunchWatch {
  public:
    /// Opens CUPTI (that of the process, or from cupti_folders()) and subscribes. May be called inside cuInit: makes no
    /// call of CUDA's. False when it cannot: why() says it. Once.
    bool start() noexcept;

    /// Another library wants CUPTI: on return ours has ended; `for_good`: take_again() does nothing from now on.
    void yield(bool for_good) noexcept;
    /// He has ended. A failure leaves things as they are.
    void take_again() noexcept;

    void after_fork_in_child() noexcept;

    bool watching() const noexcept { return watching_.load(std::memory_order_acquire); }
    /// CUPTI was held once, and not all the time since.
    bool has_gaps() const noexcept { return gaps_.load(std::memory_order_relaxed); }
    /// Why start() failed, in a user's words; empty if it did not.
    std::string why() const;
    const LaunchCounter& launches() const noexcept { return launches_; }

  private:
    struct Calls {
        cupti::Subscribe subscribe = nullptr;
        cupti::Unsubscribe unsubscribe = nullptr;
        cupti::EnableCallback enable = nullptr;
        cupti::ResultString text = nullptr;
    };
    static void on_callback(void* self, int domain, uint32_t id, const void* data);
    bool open();
    bool subscribe(std::string& why);
    std::string text_of(cupti::Result result) const;

    mutable std::mutex mutex_;  // guards what follows
    Calls calls_;
    cupti::Subscriber subscriber_ = nullptr;
    std::string why_;
    bool given_up_ = false;

    std::atomic<bool> watching_{false};
    std::atomic<bool> gaps_{false};
    std::atomic<bool> forked_{false};
    LaunchCounter launches_;
};

/// The process's own.
LaunchWatch& launch_watch();

}  // namespace numsan
