#include "host/device/device_scans.h"

#include <algorithm>

#include "host/birth/zeros.h"
#include "host/device/device_views.h"

namespace numsan {
namespace {

/// The quick pass does not count zeros. The exact pass takes several times as long: seldom, and not of much.
bool counts_zeros(const DeviceEvent& event) {
    constexpr int64_t kMostBytes = 16 << 20;
    if (!event.context.underflow || !looks_for_zeros(event.context.step)) return false;
    int64_t bytes = 0;
    for (int32_t i = 0; i < event.op.output_count; ++i) bytes += bytes_of(event.outputs[i]);
    for (int32_t i = 0; i < event.op.input_count; ++i) bytes += bytes_of(event.inputs[i]);
    return bytes < kMostBytes && asks_for_zeros(event.op);
}

}  // namespace

uint64_t watched(const TensorView* views, int32_t count, const DeviceQueue& queue) noexcept {
    uint64_t bits = 0;
    for (int32_t i = 0; i < std::min(count, kMostWatched); ++i) {
        if (is_here(queue, views[i])) bits |= uint64_t(1) << i;
    }
    return bits;
}

std::vector<DeviceScan> watching_scans(const TensorView* views, uint64_t watch, const DeviceQueue& queue,
                                       ScanTicket sequence, bool raises_gate, const ReplayBudget& replays) {
    std::vector<DeviceScan> scans;
    for (int32_t i = 0; watch >> i != 0; ++i) {
        if (((watch >> i) & 1) == 0) continue;
        DeviceScan scan{};
        scan.queue = queue;
        scan.outputs = views + i;
        scan.output_count = 1;
        scan.sequence = sequence.number;
        ++sequence;
        scan.raises_gate = raises_gate;
        scan.replays = replays;
        scans.push_back(scan);
    }
    return scans;
}

OutputScans::OutputScans(const DeviceEvent& event, const ReplayBudget& replays) : replays_(replays) {
    const bool lists = is_over_lists(event.op);
    exact_ = !lists && counts_zeros(event);
    operands_.reserve(lists ? static_cast<size_t>(event.op.input_count) : DeviceHit::kMaxInputs);
    ScanTicket sequence = event.sequence;
    for (int32_t i = 0; i < event.op.output_count; ++i) {
        if (!is_handed(event.op, i, event.read)) continue;
        int32_t end = i + 1;
        while (!lists && end < event.op.output_count && is_handed(event.op, end, event.read)) ++end;
        add(event, i, end, sequence, lists || scans_.empty());
        sequence = sequence + static_cast<uint64_t>(end - i);
        i = end - 1;
    }
}

void OutputScans::add(const DeviceEvent& event, int32_t begin, int32_t end, ScanTicket sequence, bool own_operands) {
    if (own_operands) {
        int32_t places[DeviceHit::kMaxInputs] = {};
        first_ = operands_.size();
        count_ = operands_of(event.op, begin, places);
        for (int32_t k = 0; k < count_; ++k) {
            operands_.push_back(event.inputs[places[k]]);
            operands_.back().flags |= kScannable;  // there, in its queue
        }
    }
    DeviceScan scan{};
    scan.queue = event.op.queue;
    scan.outputs = event.outputs + begin;
    scan.output_count = end - begin;
    scan.inputs = operands_.data() + first_;
    scan.input_count = count_;
    scan.sequence = sequence.number;
    scan.exact = exact_;
    scan.replays = replays_;
    scan.takes_turns = event.op.op->op_class != OpClass::LossScale &&
                       std::none_of(scan.outputs, scan.outputs + scan.output_count, is_parameter);
    scans_.push_back(scan);
}

/// What waits goes with the launch of something else.
int64_t cost_of(const DeviceScanner& scanner, const std::vector<DeviceScan>& scans) noexcept {
    constexpr int64_t kExact = 5;  // times as many instructions, about
    int64_t bytes = 0, further = 0;
    for (const DeviceScan& scan : scans) {
        int64_t operands = 0;
        for (int32_t i = 0; i < scan.input_count; ++i) operands += bytes_of(scan.inputs[i]);
        if (scan.exact) bytes += operands * kExact;
        for (int32_t i = 0; i < scan.output_count; ++i) {
            const int64_t output = bytes_of(scan.outputs[i]);
            bytes += output * (scan.exact ? 1 + kExact : 1);
            further = std::max(further, scanner.further_launches(output + operands, scan.exact));
        }
    }
    return scanner.cost(scans[0].queue.device, (scans[0].held_by != nullptr ? 0 : 1) + further, bytes);
}

}  // namespace numsan
