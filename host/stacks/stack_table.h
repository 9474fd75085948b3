// The set of stacks seen lately: hash of a stack -> StackId, StackId -> frames. Bounded: the coldest stacks give way.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "host/stacks/stack_source.h"

namespace numsan {

/// One frame as its owner stores it. What `code` points at is the owner's business: a description for Python, an
/// instruction address for native code.
struct StoredFrame {
    const void* code;
    const void* self;
    int32_t line;
};

/// Interned stacks. [MT] Every member may be called from any thread; find() and in_module() take no lock. A stack is
/// known by its 64-bit hash alone.
///
/// Where there is no room, a quarter of the table is given up: stacks that were not found for longest, those that are
/// kept last. A stack that comes again gets another id; an old id never names another stack, until 2^15 more have had
/// its place.
class StackTable {
  public:
    struct Limits {
        uint32_t stacks = (1u << 16) - 1;
        uint32_t frames = 1u << 20;  ///< of all stacks: 24 MiB
    };
    using Drop = std::function<void(std::span<const StoredFrame>)>;

    /// `drop` is told the frames of each stack that gives way, under the table's lock, by the thread that inserts.
    explicit StackTable(Drop drop = {}) : StackTable(std::move(drop), Limits{}) {}
    StackTable(Drop drop, Limits limits);
    ~StackTable();
    StackTable(const StackTable&) = delete;
    StackTable& operator=(const StackTable&) = delete;

    /// The stack with this hash, or 0. While the table makes room it may answer 0 for one that is there.
    StackId find(uint64_t hash) const noexcept {
        hash = key(hash);
        const uint32_t round = round_.load(std::memory_order_acquire);
        const Index* index = index_.load(std::memory_order_acquire);
        for (uint64_t i = hash & index->mask;; i = (i + 1) & index->mask) {
            const uint64_t found = index->slots[i].hash.load(std::memory_order_acquire);
            if (found == hash) {
                const uint64_t use = index->slots[i].use.load(std::memory_order_acquire);
                return use >> 32 == round ? static_cast<StackId>(use) : find_cold(hash);
            }
            if (found == 0) return 0;
        }
    }

    struct Inserted {
        StackId id;
        bool added;  ///< by this call; else another thread was first
    };
    /// Adds a stack. Takes a lock; throws std::bad_alloc.
    Inserted insert(uint64_t hash, std::vector<StoredFrame> frames, bool in_module);

    /// Frames, innermost first; empty for an id that was never handed out, or whose stack gave way. Takes a lock.
    std::vector<StoredFrame> frames(StackId id) const;
    /// Whether an id still names a stack. Takes a lock.
    bool holds(StackId id) const noexcept;
    static bool in_module(StackId id) noexcept { return (id & kInModule) != 0; }

    /// A stack that is kept gives way only where nothing else can. Takes a lock.
    void keep(StackId id) noexcept;
    void release(StackId id) noexcept;

    /// find() does not find it any more; its frames stay until it gives way. Takes a lock.
    void retire(StackId id) noexcept;

    /// Held over a fork.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

    uint32_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
    /// Stacks that gave way so far.
    int64_t forgotten() const noexcept { return forgotten_.load(std::memory_order_relaxed); }

  private:
    /// An id: a bit, how often the place was used before, the place. Places count from 1.
    static constexpr StackId kInModule = 1u << 31;
    static constexpr uint32_t kPlaceBits = 16;
    static constexpr StackId kPlaces = 1u << kPlaceBits;
    static constexpr uint32_t kGenerations = 1u << 15;
    static constexpr uint32_t kChunk = 1024;
    static constexpr uint64_t kRetired = ~uint64_t(0);  ///< hash of a slot whose stack was taken out

    /// `use`: the round in which the stack was found last, and its id. Set before the hash.
    struct Slot {
        std::atomic<uint64_t> hash{0};
        std::atomic<uint64_t> use{0};
    };
    struct Index {
        explicit Index(uint64_t size) : mask(size - 1), slots(new Slot[size]) {}
        uint64_t mask;
        std::unique_ptr<Slot[]> slots;
    };
    struct Stack {
        StackId id = 0;  ///< 0: free
        uint32_t generation = 0;
        uint32_t kept = 0;
        uint32_t round = 0;  ///< as of the last time room was made
        uint64_t hash = 0;   ///< 0: find() does not find it
        std::vector<StoredFrame> frames;
    };

    static uint64_t key(uint64_t hash) noexcept { return hash == 0 || hash == kRetired ? 1 : hash; }
    StackId find_cold(uint64_t hash) const noexcept;
    static void put(Index& index, uint64_t hash, uint64_t use) noexcept;
    Stack* stack(StackId id) const noexcept;
    Stack& at(uint32_t place) const noexcept;
    Index& index_with_room();
    uint32_t take_place();
    void give_up(uint32_t place);
    void make_room();
    void rebuild();

    // Read for every operator.
    std::atomic<Index*> index_;
    /// Even, and advances as stacks are added; odd while the index is rebuilt. Then every slot gets a later round, so
    /// that a reader who holds an earlier one believes none.
    std::atomic<uint32_t> round_{2};

    const Limits limits_;
    const Drop drop_;
    mutable std::mutex mutex_;  ///< of what follows, and of writing the index
    std::atomic<uint32_t> size_{0};
    std::atomic<int64_t> forgotten_{0};
    uint32_t places_ = 0;       ///< that were ever used
    uint64_t used_slots_ = 0;   ///< of the index, retired ones included
    uint64_t frame_count_ = 0;  ///< of all stacks
    uint64_t since_round_ = 0;  ///< frames added in this round
    std::vector<uint32_t> free_;
    std::unique_ptr<Stack[]> chunks_[kPlaces / kChunk];
    std::vector<std::unique_ptr<Index>> indexes_;  ///< all sizes so far: a reader may still be in an old one
};

}  // namespace numsan
