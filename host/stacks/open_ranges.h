// Ranges that the program has begun and not ended, as it names them by NVTX: where it is, in its own words.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "host/stacks/range_path.h"

namespace numsan {

/// A range begins or ends. Ranges that are pushed are the thread's: a pop ends the innermost of its domain. Ranges that
/// are started are the process's, and may end on another thread.
struct RangeEvent {
    enum class Kind : uint8_t { Push, Pop, Start, Stop };
    Kind kind;
    bool ignored;      ///< Push, Start: what happens inside is the program's own business
    uint64_t key;      ///< Push, Pop: of the domain. Start, Stop: of the range
    const char* name;  ///< Push, Start: empty where the program gives none
};

/// A range that a thread has pushed.
struct OpenRange {
    uint64_t domain;
    bool ignored;
    std::string name;  ///< empty: it adds none
    uint64_t hash;     ///< of the names up to this one; 0: there are none
};

/// [MT] Paths of names are interned; of those that no thread is in the table forgets the ones left for longest.
class OpenRanges {
  public:
    static constexpr size_t kMostNames = 16;      ///< that a path has: the innermost
    static constexpr size_t kMostPushed = 256;    ///< of a thread; deeper ones have no names
    static constexpr size_t kMostStarted = 64;    ///< the latest; those before have no names
    static constexpr size_t kMostIgnored = 4096;  ///< started ones, at a time; further ones are not known
    static constexpr size_t kMostPaths = 8192;
    static constexpr int kMostThreads = 1024;  ///< with open ranges, or that ended with some; others have no names

    /// On the thread that the event happens on, whose ranges are given. Without memory ranges have no names.
    void take(ThreadRanges& thread, const RangeEvent& event) noexcept;

    /// Where the thread is. For each op.
    RangePath path(const ThreadRanges& thread) const noexcept {
        return {thread.path, started_path_.load(std::memory_order_relaxed)};
    }
    /// Whether what the thread does is the program's own business. For each op.
    bool ignores(const ThreadRanges& thread) const noexcept {
        return thread.ignored_from >= 0 || ignoring_.load(std::memory_order_relaxed) > 0;
    }

    /// Names of a path, outermost first; none of one that was forgotten. May throw std::bad_alloc.
    std::vector<std::string> names(const RangePath& path) const;

    /// Held over a fork.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

  private:
    struct Path {
        RangeId id;
        uint64_t hash;
        std::vector<std::string> names;  ///< outermost first
        int open = 0;                    ///< threads that are in it, and the process
    };
    using Paths = std::list<Path>;
    struct Started {
        uint64_t key;
        std::string name;
    };

    void push(ThreadRanges& thread, const RangeEvent& event);
    void pop(ThreadRanges& thread, uint64_t domain);
    void start(const RangeEvent& event);
    void stop(uint64_t key);
    void forget(ThreadRanges& thread) noexcept;
    template <class Ranges>
    RangeId enter(RangeId left, uint64_t hash, const Ranges& ranges);
    void leave(RangeId id) noexcept;
    void make_room();
    void follow_thread(ThreadRanges& thread);
    void follow_started();

    mutable std::mutex mutex_;  ///< of what follows
    RangeId last_ = 0;
    Paths paths_;  ///< those that were left last are at the end
    std::unordered_map<uint64_t, Paths::iterator> by_hash_;
    std::unordered_map<RangeId, Paths::iterator> by_id_;
    std::vector<Started> started_;
    std::vector<uint64_t> ignored_;  ///< keys of started ones
    std::atomic<RangeId> started_path_{0};
    std::atomic<int> ignoring_{0};
    std::atomic<int> threads_{0};  ///< that have ThreadRanges::pushed
};

}  // namespace numsan
