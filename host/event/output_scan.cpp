// What OutputScan leaves to few ops, out of the way of all others: a file of its own, as op_end is made of one piece.
#include "host/event/output_scan.h"

#include <algorithm>

namespace numsan {
OutputSet OutputScan::scan_any(const OpEvent& event, OpSeq seq, OutputSet wanted, Range* ranges,
                               OpTally& tally) noexcept {
    tally = {};
    // Other threads are writing a collective's results now; they are looked at when they are read.
    if (event.op->op_class == OpClass::Allocation || event.op->op_class == OpClass::Collective) {
        std::fill_n(ranges, std::min(event.output_count, kMaxRanges), Range{});
        tally.add(OpTally::without_values(event.op->op_class));
        return {};
    }
    OutputSet bad;
    const bool sampled = ScanClock::samples(seq);
    int64_t small_ns = sampled ? -ScanClock::now() : 0;
    int64_t large_outputs = 0, large_bytes = 0;
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if (i < kMaxRanges) ranges[i] = Range{};
        if ((output.flags & kScannable) == 0) {
            tally.add((output.flags & kLater) == 0 ? OpOutcome::Integer : OpOutcome::Device);
            continue;
        }
        if (!wanted.contains(i)) {
            tally.add(OpOutcome::Tier);
            continue;
        }
        tally.add(OpOutcome::Scanned);
        const int64_t size = bytes_of(output);
        tally.bytes += size;
        const bool large = size >= ScanClock::kLargeBytes;
        const int64_t began = large ? ScanClock::now() : 0;
        const Range range = range_of(scanner_, output, share_.load(std::memory_order_relaxed));
        if (large) {
            const int64_t ns = ScanClock::now() - began;
            clock_.large(ns);
            small_ns -= ns;
            ++large_outputs;
            large_bytes += size;
        }
        if (range.suspicious) bad.add(i);
        if (i < kMaxRanges) ranges[i] = range;
    }
    if (sampled)
        clock_.sampled(small_ns + ScanClock::now(), event.output_count - large_outputs, tally.bytes - large_bytes);
    return bad;
}

}  // namespace numsan
