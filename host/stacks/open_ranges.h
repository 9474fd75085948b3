// Ranges that the program has begun and not ended, as it names them by NVTX: where it is, in its own words.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "host/stacks/range_path.h"

namespace numsan {

/// What happens inside a range of this name is the program's own business.
inline constexpr char kIgnoredRange[] = "numsan:ignore";

/// A range begins or ends. Ranges that are pushed are the thread's: a pop ends the innermost of its domain. Ranges that
/// are started are the process's, and may end on another thread.
struct RangeEvent {
    enum class Kind : uint8_t { Push, Pop, Start, Stop };
    Kind kind;
    uint64_t key;      ///< Push, Pop: of the domain. Start, Stop: of the range
    const char* name;  ///< Push, Start: empty where the program gives none
};

/// [MT] Names are interned; of those that no open range has, the oldest are forgotten.
class OpenRanges {
  public:
    static constexpr size_t kMostNames = 16;     ///< that a path has: the innermost
    static constexpr size_t kMostStarted = 64;   ///< at a time; further ones are not known
    static constexpr size_t kMostPushed = 4096;  ///< of a thread; deeper ones are counted and not known
    static constexpr size_t kMostPaths = 4096;

    /// On the thread that the event happens on, whose ranges are given. Without memory a range has no name.
    void take(ThreadRanges& thread, const RangeEvent& event) noexcept;

    /// Where the thread is. For each op.
    RangePath path(const ThreadRanges& thread) const noexcept {
        return {thread.path, started_path_.load(std::memory_order_relaxed)};
    }
    /// Inside a started range whose business is the program's own.
    bool ignoring() const noexcept { return ignoring_.load(std::memory_order_relaxed) > 0; }

    /// Names of a path, outermost first; none of one that was forgotten. May throw std::bad_alloc.
    std::vector<std::string> names(const RangePath& path) const;

    /// Held over a fork.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

  private:
    using Names = std::vector<std::string>;  ///< innermost first
    /// Shared by the table and the open ranges that have it.
    struct Path {
        RangeId id;
        uint64_t hash;
        Names names;
    };
    using PathPointer = std::shared_ptr<const Path>;
    struct Started {
        uint64_t key;
        bool ignored;
        std::string name;
    };
    friend struct OpenRange;

    void push(ThreadRanges& thread, const RangeEvent& event);
    void pop(ThreadRanges& thread, uint64_t domain);
    void start(const RangeEvent& event);
    void stop(uint64_t key);
    void follow_started();
    PathPointer inside(const PathPointer& outer, const std::string& name);
    void forget_oldest();

    mutable std::mutex mutex_;  ///< of what follows
    RangeId last_ = 0;
    std::map<RangeId, PathPointer> paths_;  ///< oldest first
    std::unordered_map<uint64_t, RangeId> by_hash_;
    std::vector<Started> started_;
    PathPointer started_names_;
    std::atomic<RangeId> started_path_{0};
    std::atomic<int> ignoring_{0};
};

/// A range that a thread has pushed.
struct OpenRange {
    uint64_t domain;
    bool ignored;
    std::string name;              ///< empty: it adds none
    OpenRanges::PathPointer path;  ///< up to this one; null: none of them has a name
};

}  // namespace numsan
