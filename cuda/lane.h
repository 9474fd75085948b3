// The scanner's own parts: contexts, lanes of launches that follow each other, and the batches that fill them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "cuda/batch_filler.h"
#include "cuda/device_state.h"
#include "cuda/launch_clock.h"

namespace numsan::gpu {

/// A storage that is pinned until its scan is launched, and where its memory was when it was handed over.
struct Held {
    const void* storage;  ///< null: nothing is held
    const void* data;
    int64_t bytes;
    int16_t output;  ///< in Batch::items; kInput
    int16_t entry;   ///< in the batch's table
    static constexpr int16_t kInput = -1;
};

/// What one request holds until a batch takes it over.
struct Holding {
    Held outputs[kBatchOutputs];
    Held inputs[DeviceHit::kMaxInputs];
    int positions[DeviceHit::kMaxInputs];  ///< in ScanRequest::inputs
    int output_count = 0, input_count = 0;
};

/// A launch in the making, and what it holds. Belongs to one thread, or to a lane under its mutex.
struct Batch {
    Batch* next = nullptr;  ///< among the spares, or of Lane::leaving
    BatchFiller filler;
    int count = 0;
    bool is_special = false;   ///< an output is looked at closely in any case, or repeats its elements
    bool takes_turns = false;  ///< all of it does, in a graph
    bool governs = false;      ///< a graph that it is captured into
    ReplayBudget replays;
    InputItems inputs;  ///< of the request that is being added
    struct Item {
        int64_t bytes;
        uint64_t sequence;
        bool dead;
    } items[kBatchOutputs];
    const StorageApi* storages = nullptr;  ///< of what is held
    int held_count = 0;
    int64_t held_bytes = 0;
    Held held[kBatchOutputs * (1 + DeviceHit::kMaxInputs)];

    bool holds(const void* storage) const noexcept {
        return std::any_of(held, held + held_count, [&](const Held& h) { return h.storage == storage; });
    }
};

/// A context that was seen. Entries are never taken away: a later context may have the handle of a lost one.
struct ContextEntry {
    enum Status : int { SettingUp, Ready, Failed, Lost };
    std::atomic<int> status{SettingUp};
    CUcontext context = nullptr;
    uint8_t index = 0;      ///< in the scanner's table
    std::thread::id owner;  ///< the thread that sets it up
    DeviceState state;
    LaunchClock clock;
    uint32_t lanes = 0;  ///< given out; guarded by the scanner's table mutex

    // The reader's.
    std::optional<HitReader> eager, replay;
    std::vector<HitSlot> eager_rest, replay_rest;  ///< a hit whose inputs have not all arrived
    std::atomic<uint64_t> offender_sequence{~uint64_t(0)};
    uint64_t offender_seen = kNoOffender;

    /// Outputs that were captured, by the low bits of their number.
    struct Captured {
        Lane* lane;
        uint64_t sequence;
    };
    std::mutex captured_mutex;
    std::unordered_map<uint32_t, Captured> captured;
    std::vector<uint64_t> ended;  ///< sequences of those whose graph is gone
};

/// Whether a graph and all that was made of it are gone, and no launch of it is on its way. Shared by a lane and the
/// driver, which announces it on a thread of its own that may call nothing of CUDA's.
class GraphEnd {
  public:
    bool has_come() const noexcept { return come_.load(std::memory_order_acquire); }
    /// The driver's; then it lets go.
    static void CUDA_CB come(void* end) noexcept {
        static_cast<GraphEnd*>(end)->come_.store(true, std::memory_order_release);
        static_cast<GraphEnd*>(end)->let_go();
    }
    void let_go() noexcept {
        if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

  private:
    ~GraphEnd() = default;
    std::atomic<bool> come_{false};
    std::atomic<int> owners_{2};
};

/// One stream, or one stream in one capture. A capture's goes to another one when its graph has come to its end.
class Lane {
  public:
    Lane(ContextEntry& c, CUstream s, std::thread::id t, uint64_t id, uint32_t n)
        : context(c), thread(t), index(n), stream_(s), capture_(id) {}
    ~Lane() {
        if (end != nullptr) end->let_go();
    }
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

    ContextEntry& context;
    const std::thread::id thread;  ///< of the per-thread default stream, which is one for each; else none
    const uint32_t index;          ///< in DeviceMemory::lanes
    GraphEnd* end = nullptr;       ///< of a capture; null: not known. Guarded by the scanner's table mutex

    CUstream stream() const noexcept { return stream_.load(std::memory_order_relaxed); }
    uint64_t capture() const noexcept { return capture_.load(std::memory_order_acquire); }  ///< 0: not captured
    bool is_captured() const noexcept { return capture() != 0; }  ///< of a lane this never changes
    /// The ids of captures are never used again, so who still knows the lane by its old one finds that it has changed.
    void pass_on(CUstream to, uint64_t capture) noexcept {
        capture_.store(kNobody, std::memory_order_relaxed);
        stream_.store(to, std::memory_order_release);
        captured_launches.store(0, std::memory_order_relaxed);
        capture_.store(capture, std::memory_order_release);
    }

    std::mutex mutex;          // guards `open` and `leaving`
    Batch* open = nullptr;     ///< what is pending; may be empty
    Batch* leaving = nullptr;  ///< batches that hold storages, taken out of `open`, not launched yet
    /// LaneMemory::looked is a pair's that is on its way, or not at rest for good: a look was refused.
    std::atomic<bool> look_taken{false};
    std::atomic<uint64_t> filter{0};           ///< bits of the storages that are pending
    std::atomic<uint32_t> left{0}, landed{0};  ///< batches that were in `leaving`, and are not any more
    std::atomic<uint32_t> captured_launches{0};
    // The reader's.
    uint32_t replays_over = 0;               ///< as of its last look at ReplayWords::done
    int64_t waits_since = 0;                 ///< steady nanoseconds; 0: no hit waits for the end of a replay
    bool is_late = false;                    ///< none waits any more, until a replay is over
    std::vector<uint32_t> captured_numbers;  ///< of the outputs that a replay scans; guarded by captured_mutex

    /// False when no deferred scan of the storage is pending or on its way. [MT] Takes no lock.
    bool may_hold(const void* storage) const noexcept {
        if ((filter.load(std::memory_order_acquire) & filter_bit(storage)) != 0) return true;
        const uint32_t over = landed.load(std::memory_order_acquire);  // first: it never is ahead of `left`
        return left.load(std::memory_order_acquire) != over;
    }

    bool is_pending(const void* storage) noexcept {
        const std::lock_guard lock(mutex);
        return open != nullptr && open->holds(storage);
    }
    bool is_leaving(const void* storage) noexcept {
        const std::lock_guard lock(mutex);
        const Batch* batch = leaving;
        while (batch != nullptr && !batch->holds(storage)) batch = batch->next;
        return batch != nullptr;
    }

    static uint64_t filter_bit(const void* storage) {
        return uint64_t(1) << ((reinterpret_cast<uintptr_t>(storage) * 0x9e3779b97f4a7c15u) >> 58);
    }

    static constexpr uint64_t kNobody = ~uint64_t(0);  ///< a capture that never is

  private:
    std::atomic<CUstream> stream_;
    std::atomic<uint64_t> capture_;
};

}  // namespace numsan::gpu
