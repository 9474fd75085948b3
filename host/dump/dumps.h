// The option `dump`: keeps what the ops of births were called with until a birth is reported, and writes files of the
// first that are.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "host/base/adapter_abi.h"
#include "host/finding/finding.h"
#include "host/finding/run_summary.h"
#include "host/options/options.h"
#include "host/track/birth_id.h"
#include "host/track/op_context.h"

namespace numsan {

/// [MT] One lock of its own, under which nothing else is called but HoldApi::drop. What is kept is bounded in number
/// and, together, by twice the option dump_limit: the oldest gives way.
class Dumps {
  public:
    /// `options` outlives it.
    explicit Dumps(const Options& options) : options_(options) {}

    /// Before the first op.
    void use(const HoldApi& hold) noexcept;

    /// Whether there is something to keep, or to write.
    bool active() const noexcept { return active_.load(std::memory_order_acquire); }

    /// Within op_end, of its op: these births are its. May throw std::bad_alloc.
    void keep(const std::vector<BirthId>& born, const OpEvent& event, const OpContext& context);

    /// A new finding, of this birth: writes its file and puts the path into Finding::dump. What went wrong, in one
    /// line, or nothing. A relative folder begins at `run.cwd`. One call at a time. May throw std::bad_alloc.
    std::optional<std::string> write(Finding& finding, BirthId birth, const RunSummary& run);

    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }
    /// In a forked child, whose files are its own. A value that was born before it may do harm there, too, so that what
    /// is kept stays.
    void begin_child() noexcept { written_ = 0; }

  private:
    static constexpr size_t kMost = 256;
    static constexpr size_t kMostOfPlace = 4;
    static constexpr size_t kMostEvicted = 1 << 12;

    /// An op that gave birth.
    struct Candidate {
        std::vector<BirthId> births;
        HeldCall* op;
        HeldCall* forward;  ///< null: none, or not known
        std::string node;
        const OpInfo* info;
        StackId stack;
    };

    int64_t bytes(const Candidate& candidate) const;
    void forget(size_t index);
    void make_room(const Candidate& candidate);
    std::optional<Candidate> take(BirthId birth);
    void release(const Candidate& candidate) const;
    void count_written(bool last);
    std::string file_path(const RunSummary& run, std::string& problem) const;
    std::string why_missing(const Finding& finding, BirthId birth) const;

    const Options& options_;
    HoldApi hold_{};
    std::atomic<bool> active_{false};
    std::mutex mutex_;
    std::deque<Candidate> candidates_;  ///< oldest first
    std::deque<BirthId> evicted_;
    int64_t bytes_ = 0;
    int64_t written_ = 0;  ///< files
};

}  // namespace numsan
