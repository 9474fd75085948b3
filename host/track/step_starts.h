// At which op each of the last steps began.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "host/base/atomic_record.h"
#include "host/base/ids.h"

namespace numsan {

/// [MT] Fixed size: it forgets the oldest. One load where nothing begins.
class StepStarts {
  public:
    StepStarts() : starts_(std::make_unique<AtomicRecord<Start>[]>(kKept)) {}

    /// Op `seq` belongs to `step`. A late call, of a step before the last, changes nothing.
    void op(int64_t step, OpSeq seq) noexcept {
        if (step > last_.load(std::memory_order_relaxed)) begin(step, seq);
    }

    /// The step that op `seq` was part of; -1 when that is not remembered.
    int64_t step_of(OpSeq seq) const noexcept {
        const int64_t last = last_.load(std::memory_order_relaxed);
        for (int64_t step = last; step >= 0 && step > last - int64_t(kKept); --step) {
            Start start;
            if (starts_[static_cast<size_t>(step) % kKept].load(start) && start.step == step && start.seq <= seq)
                return step;
        }
        return -1;
    }

  private:
    struct Start {
        int64_t step = -1;
        OpSeq seq = OpSeq::None;
    };

    [[gnu::noinline, gnu::cold]] void begin(int64_t step, OpSeq seq) noexcept {
        int64_t last = last_.load(std::memory_order_relaxed);
        if (step > last && last_.compare_exchange_strong(last, step, std::memory_order_relaxed))
            starts_[static_cast<size_t>(step) % kKept].store({step, seq});
    }

    static constexpr size_t kKept = 1024;
    std::unique_ptr<AtomicRecord<Start>[]> starts_;
    std::atomic<int64_t> last_{-1};
};

}  // namespace numsan
