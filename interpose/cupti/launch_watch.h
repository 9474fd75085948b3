// Kernel launches as CUPTI reports them: the Callback API only, the driver's domain, launches only. Never the Activity
// API, whose buffers belong to a profiler. CUPTI is opened at run time; there is room for one subscriber in a process,
// who gives way to others.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "interpose/cupti/cupti_abi.h"
#include "interpose/cupti/launch_counter.h"
#include "interpose/cupti/launch_log.h"
#include "interpose/cupti/memory_calls.h"

namespace numsan {

/// A launch of a kernel on one device. Valid during the call.
struct WatchedLaunch {
    const char* symbol;  ///< the kernel's mangled name, may be null
    void** arguments;    ///< null: handed over as one block, or nothing
    void* stream;
    LaunchSpan launches = {};  ///< once it was made: itself in the log
};

/// What hears of the driver's calls, on the thread that makes them and inside the driver. It may launch: what it makes
/// of calls is not watched. Nothing throws. [MT]
class DriverListener {
  public:
    virtual void before_launch(const WatchedLaunch& launch) noexcept = 0;
    virtual void after_launch(const WatchedLaunch& launch) noexcept = 0;
    /// Of a graph, or on several devices.
    virtual void after_other_launch() noexcept = 0;
    /// `name` lives for ever.
    /// Before memory is freed; after anything else.
    virtual void memory_call(const cupti::MemoryCall& call, const char* name) noexcept = 0;
    /// Calls will be missed from now on, or were.
    virtual void after_gap() noexcept = 0;

  protected:
    ~DriverListener() = default;
};

/// While it lives, calls of the driver's that this thread makes are numsan's own: they are not watched.
class OwnCalls {
  public:
    OwnCalls() noexcept;
    ~OwnCalls();
    OwnCalls(const OwnCalls&) = delete;
    OwnCalls& operator=(const OwnCalls&) = delete;

  private:
    bool before_;
};

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

    /// Before start(): `listener` hears of all that is watched, and of calls for memory. It lives for ever.
    void use(DriverListener& listener) noexcept { listener_ = &listener; }
    /// It hears of nothing from now on, but for what is under way.
    void end_listening() noexcept { listens_.store(false, std::memory_order_relaxed); }

    /// From now on launches are logged, too; before, what follows knows of none.
    void log_launches() noexcept { logs_.store(true, std::memory_order_relaxed); }
    /// The number of the next launch of the process.
    uint64_t next_launch() const noexcept { return log_.count(); }
    /// What the calling thread has launched since it had that number.
    LaunchSpan since(uint64_t launch) const noexcept { return log_.since(launch); }
    /// The last launches of a span, oldest first; empty where one of the span is not known any more. Throws
    /// std::bad_alloc.
    std::vector<LoggedLaunch> launches_of(const LaunchSpan& span) const;
    /// The kernel of one of them, demangled. Throws std::bad_alloc.
    std::string kernel_of(const LoggedLaunch& launch) const;
    /// Keeps them known: they were captured into a graph, whose replays ask for them much later. Bounded: the oldest
    /// go. Throws std::bad_alloc.
    void keep(const LaunchSpan& span);

  private:
    static constexpr size_t kMostKept = 1 << 14;  ///< spans

    struct Calls {
        cupti::Subscribe subscribe = nullptr;
        cupti::Unsubscribe unsubscribe = nullptr;
        cupti::EnableCallback enable = nullptr;
        cupti::ResultString text = nullptr;
    };
    static void on_callback(void* self, int domain, uint32_t id, const void* data);
    void on_memory_call(uint32_t id, const cupti::CallbackData& call) noexcept;
    DriverListener* listening() const noexcept {
        return listens_.load(std::memory_order_relaxed) && !forked_.load(std::memory_order_relaxed) ? listener_
                                                                                                    : nullptr;
    }
    bool enable(uint32_t id, std::string& why);
    bool open();
    bool subscribe(std::string& why);
    std::string text_of(cupti::Result result) const;

    mutable std::mutex mutex_;  // guards what follows
    Calls calls_;
    cupti::Subscriber subscriber_ = nullptr;
    std::string why_;
    bool given_up_ = false;

    using Begin = std::pair<uint64_t, uint32_t>;  ///< of a span: its first number and its thread
    mutable std::mutex kept_mutex_;               ///< of what follows; no other library is called under it
    std::map<Begin, std::vector<LoggedLaunch>> kept_;

    std::atomic<bool> watching_{false};
    std::atomic<bool> gaps_{false};
    std::atomic<bool> forked_{false};
    LaunchCounter launches_;
    std::atomic<bool> logs_{false};
    LaunchLog log_;
    DriverListener* listener_ = nullptr;
    std::atomic<bool> listens_{true};
};

/// The process's own.
LaunchWatch& launch_watch();

/// A kernel's name as C++ has it; the name itself where it is none of C++'s. Throws std::bad_alloc.
std::string demangled(const std::string& name);

}  // namespace numsan
