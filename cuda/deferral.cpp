// Small outputs that wait for each other: what is held for them, and for how long.
#include <algorithm>

#include "cuda/cuda_scanner.h"
#include "cuda/lane.h"
#include "cuda/thread_state.h"

namespace numsan::gpu {
namespace {

bool is_small(const TensorView& view) { return view.storage != nullptr && view.storage_bytes < kDeferBelowBytes; }

/// Calls `visit` for the inputs that are looked at, until it returns false. False then.
template <class Visit>
bool each_input(const ScanRequest& request, Visit visit) {
    for (int i = 0, readable = 0; i < request.input_count && readable < DeviceHit::kMaxInputs; ++i) {
        if ((request.inputs[i].flags & kScannable) == 0) continue;
        ++readable;
        if (!visit(request.inputs[i], i)) return false;
    }
    return true;
}

/// Not for what an op wrote in place: its memory may belong to another stream.
bool may_defer(const ScanRequest& request) {
    if (request.storages == nullptr || request.raises_gate || request.output_count > kBatchOutputs) return false;
    const TensorView *begin = request.outputs, *end = begin + request.output_count;
    return std::all_of(begin, end, is_small) && each_input(request, [&](const TensorView& input, int) {
               const auto same = [&](const TensorView& output) { return output.storage == input.storage; };
               return is_small(input) && std::none_of(begin, end, same);
           });
}

/// Gives back what is held. It may run the program's code, which may come back to us.
void let_go(const StorageApi& storages, Held* held, int count) {
    if (count == 0) return;
    const Outside outside;
    for (int i = 0; i < count; ++i) {
        if (held[i].storage != nullptr) storages.unpin(held[i].storage);
    }
}

void let_go(const StorageApi& storages, Holding& holding) {
    let_go(storages, holding.outputs, holding.output_count);
    let_go(storages, holding.inputs, holding.input_count);
}

/// False: nothing is held.
bool hold(const ScanRequest& request, Holding& holding) {
    const StorageApi& storages = *request.storages;
    const auto pin = [&](const TensorView& view, Held& held) {
        held = Held{view.storage, nullptr, 0, Held::kInput, 0};
        return storages.pin(view.storage, &held.data, &held.bytes);
    };
    bool whole = true;
    for (int i = 0; whole && i < request.output_count; ++i) {
        whole = pin(request.outputs[i], holding.outputs[i]);
        holding.output_count += whole;
    }
    whole = whole && each_input(request, [&](const TensorView& input, int position) {
                const bool held = pin(input, holding.inputs[holding.input_count]);
                holding.positions[holding.input_count] = position;
                holding.input_count += held;
                return held;
            });
    if (!whole) let_go(storages, holding);
    return whole;
}

/// The bytes that the batch then holds more.
int64_t take_over(Batch& batch, Held& held, int output, int entry) {
    held.output = static_cast<int16_t>(output);
    held.entry = static_cast<int16_t>(entry);
    batch.held[batch.held_count++] = held;
    held.storage = nullptr;
    return batch.held[batch.held_count - 1].bytes;
}

}  // namespace

CudaScanner::Deferral CudaScanner::defer(Lane& lane, const ScanRequest& request, Holding& holding) noexcept {
    const std::lock_guard lock(lane.mutex);
    if (lane.open == nullptr) {
        lane.open = spare();
        if (lane.open == nullptr) return Deferral::NotTaken;
        begin(lane, *lane.open, false);
    }
    Batch& batch = *lane.open;
    if (batch.count + request.output_count > kBatchOutputs ||
        !batch.filler.has_room(request.output_count + holding.input_count))
        return Deferral::Full;
    const int before = batch.count;
    uint64_t bits = 0;
    const bool held_none = batch.held_count == 0;
    batch.inputs = batch.filler.add_inputs(request.inputs, request.input_count, DeviceHit::kMaxInputs);
    for (int i = 0; i < request.output_count; ++i) {
        const int index = batch.count;
        add(lane, batch, request, i);
        if (batch.count == index) continue;
        bits |= Lane::filter_bit(request.outputs[i].storage);
        batch.held_bytes += take_over(batch, holding.outputs[i], index, index);
    }
    for (int i = 0; batch.count != before && i < batch.inputs.count; ++i) {
        const int entry = batch.inputs.first + i;
        for (int k = 0; k < holding.input_count; ++k) {
            if (holding.positions[k] != batch.filler.position_of(entry)) continue;
            bits |= Lane::filter_bit(holding.inputs[k].storage);
            batch.held_bytes += take_over(batch, holding.inputs[k], Held::kInput, entry);
        }
    }
    batch.inputs = InputItems{};
    batch.storages = request.storages;
    const auto added = static_cast<uint64_t>(batch.count - before);
    if (held_none && batch.held_count != 0) holding_.fetch_add(1, std::memory_order_relaxed);
    lane.filter.fetch_or(bits, std::memory_order_relaxed);
    deferred_.fetch_add(added, std::memory_order_relaxed);
    pending_.fetch_add(added, std::memory_order_relaxed);
    return batch.count == kBatchOutputs || batch.held_bytes >= kDeferredBytes ? Deferral::Due : Deferral::Pending;
}

/// False: it is to be scanned at once.
bool CudaScanner::scan_later(Lane& lane, const ScanRequest& request) noexcept {
    Holding holding;
    if (!may_defer(request) || !hold(request, holding)) return false;
    Deferral deferral = defer(lane, request, holding);
    if (deferral == Deferral::Full) {
        flush_lane(lane);
        deferral = defer(lane, request, holding);
    }
    if (deferral == Deferral::Due) flush_lane(lane);
    gpu::let_go(*request.storages, holding);
    return deferral == Deferral::Pending || deferral == Deferral::Due;
}

/// What is held may have lost its memory all the same: then that is not touched. The storages live, so pinning them
/// once more waits for no thread.
void CudaScanner::look_again(Lane& lane, Batch& batch) noexcept {
    uint64_t outputs = 0;
    for (int i = 0; i < batch.held_count; ++i) {
        const Held& held = batch.held[i];
        const void* data = nullptr;
        int64_t bytes = 0;
        const bool there = batch.storages->pin(held.storage, &data, &bytes);
        if (there) batch.storages->unpin(held.storage);
        outputs += held.output != Held::kInput;
        if (there && data == held.data && bytes >= held.bytes) continue;
        batch.filler.drop(held.entry);
        if (held.output == Held::kInput) continue;
        batch.items[held.output].dead = true;
        skip_item(lane, batch.items[held.output].sequence, SkipReason::Dead);
    }
    pending_.fetch_sub(outputs, std::memory_order_relaxed);
}

/// Not at the end of the program: it has no code to run by then.
void CudaScanner::let_go(Batch& batch) noexcept {
    if (batch.held_count != 0 && !keeps_held_.load(std::memory_order_relaxed) &&
        off_.load(std::memory_order_relaxed) != static_cast<int>(SkipReason::Closed))
        gpu::let_go(*batch.storages, batch.held, batch.held_count);
    batch.held_count = 0;
    batch.held_bytes = 0;
}

}  // namespace numsan::gpu
