// From requests to launches: at once, or gathered in a batch for each stream.
#include "cuda/cuda_scanner.h"

#include <algorithm>

#include "cuda/lane.h"
#include "cuda/outcomes.h"
#include "cuda/thread_state.h"
#include "host/base/tensor_bytes.h"

namespace numsan::gpu {
namespace {

bool repeats_elements(const TensorView& view) {
    for (int d = 0; d < view.ndim; ++d) {
        if (view.strides[d] == 0 && view.sizes[d] > 1) return true;
    }
    return false;
}

Outcomes::Outcome expected_from(const Lane& lane) { return {Outcomes::Kind::Expected, lane.context.index}; }

}  // namespace

/// ask(at, capture) with the context current; false where the stream cannot be asked whether it is captured.
template <class Ask>
bool CudaScanner::ask_stream(const StreamRef& where, Ask ask) noexcept {
    const Inside inside;
    if (!usable() || !inside) return false;
    StreamRef at = where;
    at.context = context_of(where);
    if (at.context == nullptr) return false;
    const ContextScope scope(*driver_, at.context);
    uint64_t capture = 0;
    SkipReason why;
    return scope.result() == CUDA_SUCCESS && ask_capture(at, capture, why) && ask(at, capture);
}

bool CudaScanner::prepare(const StreamRef& where) noexcept {
    return ask_stream(where, [&](const StreamRef& at, uint64_t capture) {
        SkipReason why;
        return context_entry(at.context, capture != 0, why) != nullptr;
    });
}

/// Calls hand(lane, captured, Stream) with the context current; all requests are for one stream.
template <class Hand>
DeviceScanner::Taken CudaScanner::hand_to_lane(const ScanRequest* requests, int count, Hand hand) noexcept {
    const Inside inside;
    const auto skip_all = [&](SkipReason why) {
        DeviceScanner::Taken taken = DeviceScanner::Taken::No;
        for (int i = 0; i < count; ++i) taken = skip_request(requests[i], why);
        return taken;
    };
    if (!usable()) return skip_all(off_reason());
    if (!inside) return skip_all(SkipReason::Reentrant);
    StreamRef where = requests[0].where;
    where.context = context_of(where);
    if (where.context == nullptr) return skip_all(SkipReason::SetUpFailed);
    const ContextScope scope(*driver_, where.context);
    if (scope.result() != CUDA_SUCCESS)
        return skip_all(driver_failed(where.context, "cuCtxPushCurrent", scope.result()));
    uint64_t capture = 0;
    SkipReason why{};
    if (!ask_capture(where, capture, why)) return skip_all(why);
    ThreadState& mine = thread_state;
    Lane* last = mine.scanner == id_ ? mine.lane : nullptr;
    Lane* lane = last;
    // The capture first: who passes a lane on writes it last, so that the stream is of that capture, or of a later one.
    if (last == nullptr || last->context.context != where.context || last->capture() != capture ||
        last->stream() != where.stream || last->context.status.load(std::memory_order_acquire) != ContextEntry::Ready) {
        lane = find_lane(where, capture, why);
        mine.scanner = id_;
        mine.lane = lane;
        if (last != nullptr) flush_lane(*last);
        if (lane == nullptr) return skip_all(why);
    }
    const ScanRequest& request = requests[count - 1];
    const uint64_t newest = request.sequence + static_cast<uint64_t>(std::max(request.output_count, 1)) - 1;
    if (newest > last_sequence_.load(std::memory_order_relaxed))
        last_sequence_.store(newest, std::memory_order_release);
    hand(*lane, capture != 0, lane == last || last == nullptr ? Stream::Asked : Stream::Unknown);
    return capture != 0 ? DeviceScanner::Taken::Captured : DeviceScanner::Taken::Now;
}

DeviceScanner::Taken CudaScanner::scan(const ScanRequest& request) noexcept {
    return hand_to_lane(&request, 1, [&](Lane& lane, bool captured, Stream stream) {
        if (captured || request.storages == nullptr) return scan_now(lane, &request, 1, stream);
        if (!scan_later(lane, request)) scan_now(lane, &request, 1, Stream::Unknown);  // what was held is given back
    });
}

DeviceScanner::Taken CudaScanner::scan(const ScanRequest* requests, int count) noexcept {
    return hand_to_lane(requests, count,
                        [&](Lane& lane, bool, Stream stream) { scan_now(lane, requests, count, stream); });
}

DeviceScanner::Taken CudaScanner::scan_behind_gate(const ScanRequest* requests, int count) noexcept {
    return hand_to_lane(requests, count,
                        [&](Lane& lane, bool, Stream stream) { scan_gated(lane, requests, count, stream); });
}

uint64_t CudaScanner::capture_of(const StreamRef& where) noexcept {
    if (where.stream == nullptr) return 0;  // the driver captures no legacy default stream
    uint64_t found = 0;
    ask_stream(where, [&](const StreamRef&, uint64_t capture) {
        found = capture;
        return true;
    });
    return found;
}

/// A failure is the caller's to tell: no scan depends on it.
bool CudaScanner::read(const StreamRef& where, const void* from, int64_t bytes, void* to) noexcept {
    return ask_stream(where, [&](const StreamRef& at, uint64_t capture) {
        if (capture != 0) return false;
        const RelaxedCapture relaxed(*driver_);  // another thread may capture
        const auto address = reinterpret_cast<CUdeviceptr>(from);
        return relaxed.result() == CUDA_SUCCESS &&
               driver_->copy_to_host(to, address, static_cast<size_t>(bytes), at.stream) == CUDA_SUCCESS &&
               driver_->stream_synchronize(at.stream) == CUDA_SUCCESS;
    });
}

void CudaScanner::begin(const Lane& lane, Batch& batch, bool gated) noexcept {
    const DeviceState& state = lane.context.state;
    DeviceMemory& memory = *state.memory;  // an address of the device: only its members' addresses are taken
    LaneMemory& scratch = memory.lanes[lane.index];
    const bool captured = lane.is_captured();
    ScanHeader header{};
    header.gate = gated ? &scratch.gate : nullptr;
    header.raise = &scratch.gate;
    header.sequence = captured ? &scratch.sequence : nullptr;
    header.scratch = scratch.items;
    header.looks = &scratch.looked.list;
    header.launch = &scratch.launch;
    header.state = captured ? &memory.replay : &memory.eager;
    header.ring = captured ? state.replay.device : state.eager.device;
    header.ring_capacity = kRingCapacity;
    header.results = captured ? nullptr : state.results_device;  // replays have one number each time
    header.results_capacity = kResults;
    batch.filler.begin(header);
    batch.count = 0;
    batch.is_special = batch.governs = false;
    batch.takes_turns = true;
}

/// False when the batch has no room. What cannot be scanned is counted.
bool CudaScanner::add(const Lane& lane, Batch& batch, const ScanRequest& request, int index) noexcept {
    if (batch.count == kBatchOutputs) return false;
    const TensorView& view = request.outputs[index];
    const uint64_t sequence = request.sequence + static_cast<uint64_t>(index);
    const uint32_t slot = static_cast<uint32_t>(sequence);
    const uint32_t order = lane.is_captured() ? 0 : slot;
    const bool exact = request.exact && !lane.is_captured();  // not at every replay
    const auto flags = static_cast<uint8_t>((request.raises_gate ? kRaisesGate : 0) | (exact ? kExact : 0));
    const Admission admission = batch.filler.add(view, slot, order, flags, batch.inputs);
    if (admission == Admission::Full) return false;
    if (!lane.is_captured()) {
        outcomes_->set(sequence, admission == Admission::Empty ? Outcomes::Outcome{Outcomes::Kind::Empty, 0}
                                                               : expected_from(lane));
    }
    if (admission == Admission::Unsupported) skip_item(lane, sequence, SkipReason::Unsupported);
    if (admission != Admission::Added) return true;
    Batch::Item& item = batch.items[batch.count++];
    batch.is_special |= exact || repeats_elements(view);
    batch.takes_turns &= request.takes_turns && request.replays.share != 0;
    batch.governs |= request.raises_gate;
    batch.replays = request.replays;
    item = Batch::Item{};
    item.bytes = bytes_of(view);
    item.sequence = sequence;
    return true;
}

void CudaScanner::add_now(Lane& lane, Batch& batch, const ScanRequest& request, bool gated, Stream stream) noexcept {
    batch.inputs = batch.filler.add_inputs(request.inputs, request.input_count, DeviceHit::kMaxInputs);
    for (int i = 0; i < request.output_count; ++i) {
        if (add(lane, batch, request, i)) continue;
        launch(lane, batch, stream);
        begin(lane, batch, gated);
        batch.inputs = batch.filler.add_inputs(request.inputs, request.input_count, DeviceHit::kMaxInputs);
        if (add(lane, batch, request, i)) continue;
        begin(lane, batch, gated);  // the inputs leave no room
        batch.inputs = InputItems{};
        add(lane, batch, request, i);
    }
    batch.inputs = InputItems{};
}

void CudaScanner::scan_now(Lane& lane, const ScanRequest* requests, int count, Stream stream) noexcept {
    Batch* batch = take(lane);  // what is pending comes first, in the same launch
    if (batch == nullptr) {
        for (int i = 0; i < count; ++i) skip_request(requests[i], SkipReason::NoLane);
        return;
    }
    look_again(lane, *batch);
    if (batch->count == 0) begin(lane, *batch, false);
    for (int i = 0; i < count; ++i) add_now(lane, *batch, requests[i], false, stream);
    launch(lane, *batch, stream);
    land(lane, batch);
}

void CudaScanner::scan_gated(Lane& lane, const ScanRequest* requests, int count, Stream stream) noexcept {
    Batch* batch = take(lane);
    if (batch == nullptr) {
        for (int i = 0; i < count; ++i) skip_request(requests[i], SkipReason::NoLane);
        return;
    }
    look_again(lane, *batch);
    launch(lane, *batch, stream);
    begin(lane, *batch, true);
    for (int i = 0; i < count; ++i) add_now(lane, *batch, requests[i], true, stream);
    batch->filler.header().flags |= kClearsGate;
    launch(lane, *batch, stream);
    land(lane, batch);
}

/// The lane's pending batch, or an empty one; null without memory. Goes back by land().
Batch* CudaScanner::take(Lane& lane) noexcept {
    const std::lock_guard lock(lane.mutex);
    Batch* batch = lane.open;
    if (batch == nullptr) {
        batch = spare();
        if (batch == nullptr) return nullptr;
        batch->count = 0;
    }
    lane.open = nullptr;
    if (batch->held_count == 0) return batch;  // no thread waits for it
    batch->next = lane.leaving;
    lane.leaving = batch;
    lane.left.fetch_add(1, std::memory_order_relaxed);
    lane.filter.store(0, std::memory_order_release);  // who sees this sees `left` too
    return batch;
}

void CudaScanner::land(Lane& lane, Batch* batch) noexcept {
    if (batch->held_count != 0) {
        {
            const std::lock_guard lock(lane.mutex);
            Batch** at = &lane.leaving;
            while (*at != batch) at = &(*at)->next;
            *at = batch->next;
        }
        lane.landed.fetch_add(1, std::memory_order_release);
        lane.landed.notify_all();
        holding_.fetch_sub(1, std::memory_order_release);
    }
    let_go(*batch);  // when no thread waits for this one
    unpin(batch);
}

void CudaScanner::flush_lane(Lane& lane) noexcept {
    if (lane.filter.load(std::memory_order_relaxed) == 0) return;
    Batch* batch = take(lane);
    if (batch == nullptr) return;
    look_again(lane, *batch);
    launch(lane, *batch, Stream::Unknown);
    land(lane, batch);
}

void CudaScanner::flush(const StreamRef& where) noexcept {
    const Inside inside;
    if (forked() || driver_ == nullptr || !inside) return;
    const CUcontext context = where.context != nullptr || !usable() ? where.context : context_of(where);
    if (context == nullptr) return;
    for (int i = 0; i < lane_count_.load(std::memory_order_acquire); ++i) {
        Lane* lane = lanes_[i].load(std::memory_order_acquire);
        if (lane->context.context == context && lane->stream() == where.stream) flush_lane(*lane);
    }
}

void CudaScanner::flush_all() noexcept {
    const Inside inside;
    if (forked() || !inside) return;
    for (int i = 0; i < lane_count_.load(std::memory_order_acquire); ++i)
        flush_lane(*lanes_[i].load(std::memory_order_acquire));
}

/// Only for what is deferred: a scan at once is in its stream before its op is over.
void CudaScanner::note_write(const void* storage) noexcept {
    if (holding_.load(std::memory_order_acquire) == 0) return;
    const Inside inside;
    if (forked() || !inside) return;
    for (int i = 0; i < lane_count_.load(std::memory_order_acquire); ++i) {
        Lane& lane = *lanes_[i].load(std::memory_order_acquire);
        if (!lane.may_hold(storage)) continue;
        if (lane.is_pending(storage)) flush_lane(lane);
        // Another thread may have taken it out and be on its way to the launch. That of other storages is not waited
        // for: it may itself wait for what the caller does next.
        for (;;) {
            const uint32_t landed = lane.landed.load(std::memory_order_acquire);
            if (!lane.is_leaving(storage)) break;
            lane.landed.wait(landed, std::memory_order_acquire);
        }
    }
}

}  // namespace numsan::gpu
