// How many ops were looked at, and why the others were not: each op counts once, so that the report's figures add up.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "host/base/adapter_abi.h"

namespace numsan {

enum class OpOutcome : uint8_t {
#define NUMSAN_OP_OUTCOME(id, key) id,
#include "host/event/op_outcomes.def"
#undef NUMSAN_OP_OUTCOME
};

/// One op, output by output.
struct OpTally {
    OpOutcome outcome = OpOutcome::NoOutput;
    const char* why = nullptr;  ///< of Unseen: a literal
    int64_t bytes = 0;          ///< that were read

    void add(OpOutcome output) noexcept { outcome = std::max(outcome, output); }
    void add_unseen(const char* reason) noexcept {
        if (reason == nullptr) return;
        if (why == nullptr) why = reason;
        outcome = OpOutcome::Unseen;
    }
    /// Of an op that leaves nothing to read when it returns.
    static OpOutcome without_values(OpClass op) noexcept {
        return op == OpClass::Collective ? OpOutcome::Collective : OpOutcome::Allocation;
    }
};

/// [MT] No lock, no allocation but in skipped().
class OpCoverage {
  public:
    void add(const OpTally& op) noexcept {
        if (op.outcome == OpOutcome::Unseen)
            add_unseen(op.why);
        else
            ops_[size_t(op.outcome)].fetch_add(1, std::memory_order_relaxed);
        if (op.bytes > 0) bytes_.fetch_add(op.bytes, std::memory_order_relaxed);
    }

    int64_t scanned() const noexcept { return of(OpOutcome::Scanned); }
    int64_t of(OpOutcome outcome) const noexcept { return ops_[size_t(outcome)].load(std::memory_order_relaxed); }
    int64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
    /// Reason -> ops, of all that were not scanned.
    std::map<std::string, int64_t> skipped() const;

  private:
    static constexpr size_t kOpOutcomes = size_t(OpOutcome::Unseen) + 1;
    /// By reason. The last entry takes what finds no room.
    struct Unseen {
        std::atomic<const char*> why{nullptr};
        std::atomic<int64_t> ops{0};
    };
    static constexpr size_t kMaxReasons = 12;

    [[gnu::cold]] void add_unseen(const char* why) noexcept;

    std::atomic<int64_t> ops_[kOpOutcomes]{};
    std::atomic<int64_t> bytes_{0};
    Unseen unseen_[kMaxReasons];
};

}  // namespace numsan
