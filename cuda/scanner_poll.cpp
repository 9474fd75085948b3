// The reader's side: rings, the first offender, and counters. Not one call of the driver.
#include <algorithm>

#include "cuda/lane.h"

namespace numsan::gpu {
namespace {

/// A hit in `slots`: an output and its inputs.
struct Group {
    uint64_t key1, key2;
    size_t first;
    int count;
};

void read_ring(HitReader& reader, std::vector<HitSlot>& slots) {
    for (HitSlot slot; reader.next(slot);)
        slots.push_back(slot);
}

/// The whole hits at the front of `slots`; `used` slots belong to them.
std::vector<Group> whole_hits(const std::vector<HitSlot>& slots, size_t& used) {
    std::vector<Group> groups;
    for (used = 0; used < slots.size();) {
        const size_t count = size_t(1) + slots[used].inputs;
        if (slots.size() - used < count) break;
        groups.push_back(Group{0, 0, used, static_cast<int>(count)});
        used += count;
    }
    return groups;
}

void sort(std::vector<Group>& groups) {
    std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
        return a.key1 != b.key1 ? a.key1 < b.key1 : a.key2 < b.key2;
    });
}

Hit hit_of(CUcontext context, const HitSlot* slots, const Group& group, uint64_t sequence, uint64_t replay) {
    return Hit{context, sequence, replay, slots->slot, to_health(*slots), slots, group.count};
}

}  // namespace

/// The number near the newest one that has these low 32 bits.
uint64_t CudaScanner::widen(uint32_t sequence) const noexcept {
    const uint64_t newest = last_sequence_.load(std::memory_order_acquire);
    return newest + static_cast<uint64_t>(int64_t(static_cast<int32_t>(sequence - static_cast<uint32_t>(newest))));
}

int CudaScanner::drain(ContextEntry& context, const std::function<void(const Hit&)>& callback) {
    const uint64_t offender = context.eager->first_offender();
    if (offender != context.offender_seen) {
        context.offender_seen = offender;
        const uint64_t sequence = widen(static_cast<uint32_t>(offender >> 32));
        if (sequence < context.offender_sequence.load(std::memory_order_relaxed)) {
            context.offender_slot.store(static_cast<uint32_t>(offender), std::memory_order_relaxed);
            context.offender_sequence.store(sequence, std::memory_order_release);
        }
    }
    std::vector<HitSlot>& slots = context.eager_rest;
    read_ring(*context.eager, slots);
    size_t used;
    std::vector<Group> groups = whole_hits(slots, used);
    for (Group& group : groups)
        group.key1 = widen(slots[group.first].sequence);
    sort(groups);
    for (const Group& group : groups)
        callback(hit_of(context.context, &slots[group.first], group, group.key1, 0));
    slots.erase(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(used));
    return static_cast<int>(groups.size());
}

int CudaScanner::drain_replays(ContextEntry& context, const std::function<void(const Hit&)>& callback) {
    std::vector<HitSlot>& slots = context.replay_rest;
    read_ring(*context.replay, slots);
    size_t used;
    std::vector<Group> groups = whole_hits(slots, used);
    std::vector<uint64_t> replays(slots.size(), 1);
    {
        const std::lock_guard lock(context.captured_mutex);
        for (Group& group : groups) {
            const HitSlot& slot = slots[group.first];
            group.key2 = slot.sequence;
            const auto found = context.captured.find(ContextEntry::captured_key(slot.slot, slot.argument));
            if (found == context.captured.end()) continue;
            const ContextEntry::Captured& captured = found->second;
            group.key1 = captured.lane->index;
            replays[group.first] =
                (slot.sequence - captured.place) / captured.lane->captured_outputs.load(std::memory_order_relaxed) + 1;
        }
    }
    sort(groups);
    for (const Group& group : groups)
        callback(hit_of(context.context, &slots[group.first], group, group.key2, replays[group.first]));
    slots.erase(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(used));
    return static_cast<int>(groups.size());
}

int CudaScanner::poll(const std::function<void(const Hit&)>& callback) {
    if (forked()) return 0;
    const std::unique_lock lock(poll_mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return 0;
    int hits = 0;
    for (int i = 0; i < context_count_.load(std::memory_order_acquire); ++i) {
        ContextEntry& context = *contexts_[i].load(std::memory_order_acquire);
        const int status = context.status.load(std::memory_order_acquire);
        if (status != ContextEntry::Ready && status != ContextEntry::Lost) continue;
        hits += drain(context, callback);
        hits += drain_replays(context, callback);
    }
    hits_.fetch_add(static_cast<uint64_t>(hits), std::memory_order_relaxed);
    return hits;
}

std::optional<CudaScanner::Offender> CudaScanner::first_offender() const noexcept {
    std::optional<Offender> first;
    for (int i = 0; i < context_count_.load(std::memory_order_acquire); ++i) {
        const ContextEntry& context = *contexts_[i].load(std::memory_order_acquire);
        const uint64_t sequence = context.offender_sequence.load(std::memory_order_acquire);
        if (sequence == ~uint64_t(0) || (first && first->sequence <= sequence)) continue;
        first = Offender{context.context, sequence, context.offender_slot.load(std::memory_order_relaxed)};
    }
    return first;
}

ScanCounters CudaScanner::counters() const noexcept {
    ScanCounters c;
    c.scanned = scanned_.load(std::memory_order_relaxed);
    c.captured = captured_.load(std::memory_order_relaxed);
    c.deferred = deferred_.load(std::memory_order_relaxed);
    c.pending = pending_.load(std::memory_order_relaxed);
    c.bytes = bytes_.load(std::memory_order_relaxed);
    c.launches = launches_.load(std::memory_order_relaxed);
    c.hits = hits_.load(std::memory_order_relaxed);
    for (int i = 0; i < kSkipReasonCount; ++i)
        c.skipped[i] = skipped_[i].load(std::memory_order_relaxed);
    for (int i = 0; i < context_count_.load(std::memory_order_acquire) && !forked(); ++i) {
        const ContextEntry& context = *contexts_[i].load(std::memory_order_acquire);
        const int status = context.status.load(std::memory_order_acquire);
        if (status == ContextEntry::Ready || status == ContextEntry::Lost)
            c.dropped += context.eager->dropped() + context.replay->dropped();
    }
    return c;
}

}  // namespace numsan::gpu
