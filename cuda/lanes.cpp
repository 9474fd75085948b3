// Which contexts and streams were seen, and the batches that go round between them.
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
        } else {
            say(failure.call, failure.result);
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
        if (&lane->context == &context && lane->stream == stream && lane->capture == capture && lane->thread == thread)
            return lane;
    }
    return nullptr;
}

Lane* CudaScanner::find_lane(const StreamRef& where, uint64_t capture, SkipReason& why) noexcept {
    ContextEntry* context = context_entry(where.context, capture != 0, why);
    if (context == nullptr) return nullptr;
    if (Lane* lane = known_lane(*context, where.stream, capture)) return lane;
    const std::lock_guard lock(table_mutex_);
    if (Lane* lane = known_lane(*context, where.stream, capture)) return lane;
    const int count = lane_count_.load(std::memory_order_relaxed);
    why = SkipReason::NoLane;
    if (count == kMaxLanes || context->lanes >= (capture != 0 ? kLanes - kStreamLanes : kLanes)) return nullptr;
    Lane* lane = new (std::nothrow) Lane(*context, where.stream, thread_of(where.stream), capture, context->lanes);
    if (lane == nullptr) return nullptr;
    ++context->lanes;
    lanes_[count].store(lane, std::memory_order_release);
    lane_count_.store(count + 1, std::memory_order_release);
    return lane;
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

void CudaScanner::give_back(Batch* batch) noexcept {
    const std::lock_guard lock(spares_mutex_);
    batch->next = spares_;
    spares_ = batch;
}

}  // namespace numsan::gpu
