// Which contexts and streams were seen, and the batches that go round between them.
#include "cuda/cuda_scanner.h"
#include "cuda/lane.h"

#include <new>

namespace numsan::gpu {
namespace {

std::thread::id thread_of(CUstream stream) {
    return stream == CU_STREAM_PER_THREAD ? std::this_thread::get_id() : std::thread::id();
}

}  // namespace

ContextEntry* CudaScanner::known_context(CUcontext context) const noexcept {
    for (int i = context_count_.load(std::memory_order_acquire) - 1; i >= 0; --i) {
        ContextEntry* entry = contexts_[i].load(std::memory_order_acquire);
        if (entry->context == context && entry->status.load(std::memory_order_acquire) != ContextEntry::Lost)
            return entry;
    }
    return nullptr;
}

ContextEntry* CudaScanner::context_entry(CUcontext context, bool captured, SkipReason& why) noexcept {
    ContextEntry* entry = known_context(context);
    if (entry == nullptr) {
        why = SkipReason::FirstUseInCapture;
        if (captured) return nullptr;
        const std::lock_guard lock(table_mutex_);
        entry = known_context(context);
        if (entry == nullptr) {
            const int count = context_count_.load(std::memory_order_relaxed);
            why = SkipReason::NoLane;
            entry = count < kMaxContexts ? new (std::nothrow) ContextEntry : nullptr;
            if (entry == nullptr) return nullptr;
            entry->context = context;
            entry->index = static_cast<uint8_t>(count);
            entry->owner = std::this_thread::get_id();
            contexts_[count].store(entry, std::memory_order_release);
            context_count_.store(count + 1, std::memory_order_release);
        }
    }
    int status = entry->status.load(std::memory_order_acquire);
    if (status == ContextEntry::SettingUp && entry->owner == std::this_thread::get_id()) {
        entry->state.context = context;
        const Failure failure = set_up(*driver_, entry->state);
        status = failure.result == CUDA_SUCCESS ? ContextEntry::Ready : ContextEntry::Failed;
        if (status == ContextEntry::Ready) {
            entry->eager.emplace(*entry->state.eager.host, kRingCapacity);
            entry->replay.emplace(*entry->state.replay.host, kRingCapacity);
            entry->clock.use(entry->state.times_host, entry->state.times_device);
        } else {
            keep_reason(failure.call, failure.result);
        }
        entry->status.store(status, std::memory_order_release);
    }
    why = status == ContextEntry::SettingUp ? SkipReason::SettingUp : SkipReason::SetUpFailed;
    return status == ContextEntry::Ready ? entry : nullptr;
}

Lane* CudaScanner::known_lane(const ContextEntry& context, CUstream stream, uint64_t capture) const noexcept {
    const std::thread::id thread = thread_of(stream);
    for (int i = lane_count_.load(std::memory_order_acquire) - 1; i >= 0; --i) {
        Lane* lane = lanes_[i].load(std::memory_order_acquire);
        if (&lane->context == &context && lane->capture() == capture && lane->stream() == stream &&
            lane->thread == thread)
            return lane;
    }
    return nullptr;
}

Lane* CudaScanner::find_lane(const StreamRef& where, uint64_t capture, SkipReason& why) noexcept {
    ContextEntry* context = context_entry(where.context, capture != 0, why);
    if (context == nullptr) return nullptr;
    if (Lane* lane = known_lane(*context, where.stream, capture)) return lane;
    Lane* lane = nullptr;
    {
        const std::lock_guard lock(table_mutex_);
        if (Lane* known = known_lane(*context, where.stream, capture)) return known;
        if (capture != 0) lane = ended_lane(*context, where.stream);
        if (lane == nullptr) lane = new_lane(*context, where.stream, capture != 0);
    }
    why = SkipReason::NoLane;
    if (lane == nullptr || capture == 0) return lane;
    GraphEnd* end = watch_graph(where.stream);
    const std::lock_guard lock(table_mutex_);
    lane->end = end;
    lane->pass_on(where.stream, capture);
    return lane;
}

/// With the table mutex held: one that no stream and no capture has had, if there may be more.
Lane* CudaScanner::new_lane(ContextEntry& context, CUstream stream, bool captured) noexcept {
    const int count = lane_count_.load(std::memory_order_relaxed);
    if (count == kMaxLanes || context.lanes >= (captured ? kLanes - kStreamLanes : kLanes)) return nullptr;
    const uint64_t capture = captured ? Lane::kNobody : 0;
    Lane* lane = new (std::nothrow) Lane(context, stream, thread_of(stream), capture, context.lanes);
    if (lane == nullptr) return nullptr;
    ++context.lanes;
    lanes_[count].store(lane, std::memory_order_release);
    lane_count_.store(count + 1, std::memory_order_release);
    return lane;
}

/// With the table mutex held: a lane whose graph is gone, so that its scratch is at rest for good; free now.
Lane* CudaScanner::ended_lane(const ContextEntry& context, CUstream stream) noexcept {
    const std::thread::id thread = thread_of(stream);
    for (int i = 0; i < lane_count_.load(std::memory_order_relaxed); ++i) {
        Lane* lane = lanes_[i].load(std::memory_order_relaxed);
        if (&lane->context != &context || lane->thread != thread || lane->end == nullptr || !lane->end->has_come())
            continue;
        lane->end->let_go();
        lane->end = nullptr;
        forget_captured(*lane);
        return lane;
    }
    return nullptr;
}

/// Late hits of the lane's last graph are known by their number alone.
void CudaScanner::forget_captured(Lane& lane) noexcept {
    const std::lock_guard lock(lane.context.captured_mutex);
    for (const uint32_t number : lane.captured_numbers) {
        const auto found = lane.context.captured.find(number);
        if (found == lane.context.captured.end() || found->second.lane != &lane) continue;
        try {
            lane.context.ended.push_back(found->second.sequence);
        } catch (const std::bad_alloc&) {  // a batch that waits for it keeps what it has
        }
        lane.context.captured.erase(found);
    }
    lane.captured_numbers.clear();
}

bool CudaScanner::next_ended(uint64_t& sequence) noexcept {
    if (forked()) return false;  // the mutex may be that of a thread of the parent
    for (int i = 0; i < context_count_.load(std::memory_order_acquire); ++i) {
        ContextEntry& context = *contexts_[i].load(std::memory_order_acquire);
        const std::lock_guard lock(context.captured_mutex);
        if (context.ended.empty()) continue;
        sequence = context.ended.back();
        context.ended.pop_back();
        return true;
    }
    return false;
}

/// The graph in the making is given an object to own, which the driver destroys when the graph, what was instantiated
/// of it and its last launch are over. Null where that cannot be had: the lane is the graph's for good.
GraphEnd* CudaScanner::watch_graph(CUstream stream) const noexcept {
    const Driver& driver = *driver_;
    if (driver.object_create == nullptr || driver.object_release == nullptr || driver.graph_retain_object == nullptr)
        return nullptr;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = nullptr;
    if (driver.capture_info(stream, &status, nullptr, &graph, nullptr, nullptr) != CUDA_SUCCESS || graph == nullptr)
        return nullptr;
    auto* end = new (std::nothrow) GraphEnd;
    if (end == nullptr) return nullptr;
    CUuserObject object = nullptr;
    if (driver.object_create(&object, end, GraphEnd::come, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) != CUDA_SUCCESS) {
        end->let_go();  // the driver's share, which it has not taken
    } else if (driver.graph_retain_object(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE) != CUDA_SUCCESS) {
        driver.object_release(object, 1);
    } else {
        return end;
    }
    end->let_go();  // NOLINT(clang-analyzer-cplusplus.NewDelete): two shares are there at first
    return nullptr;
}

Batch* CudaScanner::spare() noexcept {
    {
        const std::lock_guard lock(spares_mutex_);
        if (Batch* batch = spares_) {
            spares_ = batch->next;
            return batch;
        }
    }
    return new (std::nothrow) Batch;
}

void CudaScanner::unpin(Batch* batch) noexcept {
    const std::lock_guard lock(spares_mutex_);
    batch->next = spares_;
    spares_ = batch;
}

}  // namespace numsan::gpu
