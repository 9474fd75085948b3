// Reads an op's outputs on the host, once.
#pragma once

#include <atomic>
#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/base/ids.h"
#include "host/base/output_set.h"
#include "host/base/scanner.h"
#include "host/base/tensor_bytes.h"
#include "host/event/op_coverage.h"
#include "host/event/scan_clock.h"

namespace numsan {

/// Outputs of one op whose range is kept; an optimizer's list can have hundreds.
inline constexpr int32_t kMaxRanges = 16;

/// [MT] No lock, no allocation.
class OutputScan {
  public:
    /// `scanner` outlives it.
    explicit OutputScan(const Scanner& scanner) : scanner_(scanner) {}

    /// Reads the outputs of op number `seq` in `wanted` (see TierPolicy::reads). The result: those that hold something
    /// that is not finite. `ranges` has kMaxRanges entries. Holds what most ops need; the rest is out of its way.
    OutputSet scan(const OpEvent& event, OpSeq seq, OutputSet wanted, Range* ranges, OpTally& tally) noexcept {
        const OpClass op_class = event.op->op_class;
        if (op_class == OpClass::Allocation || op_class == OpClass::Collective || ScanClock::samples(seq)) [[unlikely]]
            return scan_any(event, seq, wanted, ranges, tally);
        tally = {};
        OutputSet bad;
        for (int32_t i = 0; i < event.output_count; ++i) {
            const TensorView& output = event.outputs[i];
            Range range{};
            if ((output.flags & kScannable) == 0) [[unlikely]] {
                tally.add((output.flags & kLater) == 0 ? OpOutcome::Integer : OpOutcome::Device);
            } else if (!wanted.contains(i)) {
                tally.add(OpOutcome::Tier);
            } else {
                const int64_t size = bytes_of(output);
                if (size >= ScanClock::kLargeBytes) [[unlikely]]
                    return scan_any(event, seq, wanted, ranges, tally);
                tally.add(OpOutcome::Scanned);
                tally.bytes += size;
                range = scanner_.range(output);
                if (range.suspicious) [[unlikely]]
                    bad.add(i);
            }
            if (i < kMaxRanges) ranges[i] = range;
        }
        return bad;
    }
    /// The same of any op.
    OutputSet scan_any(const OpEvent& event, OpSeq seq, OutputSet wanted, Range* ranges, OpTally& tally) noexcept;

    /// Large outputs may be scanned by several threads from now on; null: no longer.
    void share(ShareWork work) noexcept { share_.store(work, std::memory_order_relaxed); }
    /// Spent here, summed over threads.
    double seconds() const noexcept { return clock_.seconds(); }

  private:
    const Scanner& scanner_;
    std::atomic<ShareWork> share_{nullptr};
    ScanClock clock_;
};

}  // namespace numsan
