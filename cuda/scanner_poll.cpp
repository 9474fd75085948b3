// The reader's side: rings, the first offender, and counters. Not one call of the driver.
#include <algorithm>
#include <chrono>
#include <tuple>

#include "cuda/cuda_scanner.h"
#include "cuda/lane.h"
#include "cuda/outcomes.h"

namespace numsan::gpu {
namespace {

/// A hit in `slots`: an output and its inputs.
struct Group {
    uint64_t key1, key2;  ///< they are handed over in the order of these, then of `sequence`
    size_t first;
    int count;
    uint64_t sequence, replay;
    uint32_t lane;
};

/// Hits of replays that are not over: of more none waits, and none for longer. A replay may never be over.
constexpr size_t kMostWaiting = kRingCapacity;
constexpr int64_t kPatience = 2'000'000'000;  // nanoseconds

int64_t now() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

void read_ring(HitReader& reader, std::vector<HitSlot>& slots) {
    for (HitSlot slot; reader.next(slot);) slots.push_back(slot);
}

/// The whole hits at the front of `slots`; `used` slots belong to them.
std::vector<Group> whole_hits(const std::vector<HitSlot>& slots, size_t& used) {
    std::vector<Group> groups;
    for (used = 0; used < slots.size();) {
        const size_t count = size_t(1) + slots[used].inputs;
        if (slots.size() - used < count) break;
        groups.push_back(Group{0, 0, used, static_cast<int>(count), 0, 0, 0});
        used += count;
    }
    return groups;
}

void sort(std::vector<Group>& groups) {
    std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
        return std::tie(a.key1, a.key2, a.sequence) < std::tie(b.key1, b.key2, b.sequence);
    });
}

Hit hit_of(CUcontext context, const HitSlot* slots, const Group& group) {
    return Hit{context, group.sequence, group.replay, group.lane, to_health(*slots), slots, group.count};
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
            context.offender_sequence.store(sequence, std::memory_order_release);
        }
    }
    std::vector<HitSlot>& slots = context.eager_rest;
    read_ring(*context.eager, slots);
    size_t used;
    std::vector<Group> groups = whole_hits(slots, used);
    for (Group& group : groups) group.key1 = group.sequence = widen(slots[group.first].sequence);
    sort(groups);
    for (const Group& group : groups) callback(hit_of(context.context, &slots[group.first], group));
    slots.erase(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(used));
    return static_cast<int>(groups.size());
}

/// True: hits that wait need not any longer.
bool CudaScanner::note_replays(const ContextEntry& context) noexcept {
    bool some = false;
    for (int i = 0; i < lane_count_.load(std::memory_order_acquire); ++i) {
        Lane& lane = *lanes_[i].load(std::memory_order_acquire);
        if (&lane.context != &context || !lane.is_captured()) continue;
        const std::atomic_ref word(context.state.replays_host[lane.index].done);
        const uint32_t done = word.load(std::memory_order_acquire);
        const bool late = lane.waits_since != 0 && now() - lane.waits_since > kPatience;
        if (done == lane.replays_over && late == lane.is_late) continue;
        some = true;
        if (done != lane.replays_over) lane.waits_since = 0;
        lane.is_late = late && done == lane.replays_over;
        lane.replays_over = done;
    }
    return some;
}

/// Those of a replay that is not over wait: what is found late may have come about first.
int CudaScanner::drain_replays(ContextEntry& context, const std::function<void(const Hit&)>& callback) {
    std::vector<HitSlot>& slots = context.replay_rest;
    const bool all = !usable() || keeps_held_.load(std::memory_order_relaxed) ||
                     context.status.load(std::memory_order_acquire) != ContextEntry::Ready;
    // First: all hits of those are in the ring by then, but for looks behind a graph's last scan.
    const bool some_over = note_replays(context);
    const size_t before = slots.size();
    read_ring(*context.replay, slots);
    if (slots.empty() || (slots.size() == before && !some_over && !all)) return 0;
    size_t used;
    std::vector<Group> groups = whole_hits(slots, used);
    std::vector<Group> ready;
    std::vector<HitSlot> rest;
    {
        const std::lock_guard lock(context.captured_mutex);
        for (Group& group : groups) {
            const HitSlot& slot = slots[group.first];
            group.replay = group.key2 = slot.sequence;
            group.sequence = widen(slot.slot);
            const auto found = context.captured.find(slot.slot);
            bool over = true;
            if (found != context.captured.end()) {
                const ContextEntry::Captured& captured = found->second;
                group.key1 = captured.lane->index;
                group.lane = uint32_t(context.index) << 16 | captured.lane->index;
                group.sequence = captured.sequence;
                over = captured.lane->is_late || static_cast<int32_t>(captured.lane->replays_over - slot.sequence) >= 0;
            }
            if (over || all || groups.size() > kMostWaiting) {
                ready.push_back(group);
                continue;
            }
            rest.insert(rest.end(), &slot, &slot + group.count);
            if (found->second.lane->waits_since == 0) found->second.lane->waits_since = now();
        }
    }
    sort(ready);
    // What had its turn may have been looked at behind a gate, too.
    const auto same = [](const Group& a, const Group& b) {
        return std::tie(a.key1, a.key2, a.sequence) == std::tie(b.key1, b.key2, b.sequence);
    };
    ready.erase(std::unique(ready.begin(), ready.end(), same), ready.end());
    for (const Group& group : ready) callback(hit_of(context.context, &slots[group.first], group));
    rest.insert(rest.end(), slots.begin() + static_cast<std::ptrdiff_t>(used), slots.end());
    slots.swap(rest);
    return static_cast<int>(ready.size());
}

template <class Drain>
int CudaScanner::poll_contexts(Drain drain) {
    if (forked()) return 0;
    const std::unique_lock lock(poll_mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return 0;
    int hits = 0;
    for (int i = 0; i < context_count_.load(std::memory_order_acquire); ++i) {
        ContextEntry& context = *contexts_[i].load(std::memory_order_acquire);
        const int status = context.status.load(std::memory_order_acquire);
        if (status != ContextEntry::Ready && status != ContextEntry::Lost) continue;
        hits += drain(context);
    }
    hits_.fetch_add(static_cast<uint64_t>(hits), std::memory_order_relaxed);
    return hits;
}

int CudaScanner::poll(const std::function<void(const Hit&)>& callback) {
    return poll_contexts([&](ContextEntry& context) {
        const int device = context.state.device;
        context.clock.take([&](int64_t bytes, int64_t nanoseconds) {
            if (device < 0 || device >= kMaxDevices) return;
            costs_[device].learn(bytes, nanoseconds);
            last_timed_.store(device, std::memory_order_relaxed);
        });
        return drain(context, callback);
    });
}

int CudaScanner::poll_replays(const std::function<void(const Hit&)>& callback) {
    return poll_contexts([&](ContextEntry& context) { return drain_replays(context, callback); });
}

CudaScanner::Outcome CudaScanner::outcome(uint64_t sequence) const noexcept {
    using Answer = DeviceScanner::Answer;
    const Outcomes::Outcome known = outcomes_->of(sequence);
    switch (known.kind) {
        case Outcomes::Kind::None: return {Answer::NotYet, {}, false, false, {}};
        case Outcomes::Kind::Empty: return {Answer::Read, {0, ~uint64_t(0), false}, false, false, {}};
        case Outcomes::Kind::Skipped: return {Answer::NotRead, {}, false, false, known.why()};
        case Outcomes::Kind::Expected: break;
    }
    if (forked()) return {Answer::NotRead, {}, false, false, SkipReason::Forked};
    const ContextEntry& context = *contexts_[known.value].load(std::memory_order_acquire);
    // In this order: what a device reported before it was lost counts.
    const bool off = off_.load(std::memory_order_acquire) == static_cast<int>(SkipReason::EngineOff);
    const bool lost = off || context.status.load(std::memory_order_acquire) == ContextEntry::Lost;
    RangeResult& result = context.state.results_host[sequence & (kResults - 1)];
    if (std::atomic_ref(result.sequence_plus_one).load(std::memory_order_acquire) ==
        uint64_t(static_cast<uint32_t>(sequence)) + 1) {
        return {Answer::Read,
                {result.largest, result.smallest_nonzero, result.bad == kHitReported || result.bad == kHitDropped},
                result.bad == kHitReported || result.bad == kFiniteReported,
                lost,
                {}};
    }
    if (!lost) return {Answer::NotYet, {}, false, false, {}};
    return {Answer::NotRead, {}, false, false, off ? SkipReason::EngineOff : SkipReason::ContextLost};
}

void CudaScanner::forget(uint64_t sequence) noexcept {
    if (outcomes_->of(sequence).kind != Outcomes::Kind::None) outcomes_->set(sequence, {Outcomes::Kind::None, 0});
}

std::optional<CudaScanner::Offender> CudaScanner::first_offender() const noexcept {
    std::optional<Offender> first;
    for (int i = 0; i < context_count_.load(std::memory_order_acquire); ++i) {
        const ContextEntry& context = *contexts_[i].load(std::memory_order_acquire);
        const uint64_t sequence = context.offender_sequence.load(std::memory_order_acquire);
        if (sequence == ~uint64_t(0) || (first && first->sequence <= sequence)) continue;
        first = Offender{context.context, sequence};
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
    for (int i = 0; i < kSkipReasonCount; ++i) c.skipped[i] = skipped_[i].load(std::memory_order_relaxed);
    for (int i = 0; i < context_count_.load(std::memory_order_acquire) && !forked(); ++i) {
        const ContextEntry& context = *contexts_[i].load(std::memory_order_acquire);
        const int status = context.status.load(std::memory_order_acquire);
        if (status == ContextEntry::Ready || status == ContextEntry::Lost)
            c.dropped += context.eager->dropped() + context.replay->dropped();
    }
    return c;
}

int64_t CudaScanner::device_bytes() const noexcept {
    int64_t bytes = 0;
    for (int i = 0; i < context_count_.load(std::memory_order_acquire); ++i) {
        if (contexts_[i].load(std::memory_order_acquire)->status.load(std::memory_order_acquire) == ContextEntry::Ready)
            bytes += static_cast<int64_t>(sizeof(DeviceMemory));
    }
    return bytes;
}

std::vector<ScannedDevice> CudaScanner::devices() const {
    std::vector<ScannedDevice> devices;
    for (int i = 0; i < context_count_.load(std::memory_order_acquire); ++i) {
        const ContextEntry& context = *contexts_[i].load(std::memory_order_acquire);
        const int status = context.status.load(std::memory_order_acquire);
        if (status != ContextEntry::Ready && status != ContextEntry::Lost) continue;
        const DeviceState& state = context.state;
        const bool known = std::any_of(devices.begin(), devices.end(),
                                       [&](const ScannedDevice& device) { return device.index == state.device; });
        if (!known) devices.push_back({state.device, state.device_name, state.major, state.minor});
    }
    std::sort(devices.begin(), devices.end(),
              [](const ScannedDevice& a, const ScannedDevice& b) { return a.index < b.index; });
    return devices;
}

}  // namespace numsan::gpu
