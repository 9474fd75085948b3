// The set of stacks seen so far: hash of a stack -> dense StackId, StackId -> frames. Grows, never shrinks.
#pragma once

#include <atomic>
#include <cstdint>
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

/// Interned stacks. [MT] Every member may be called from any thread; find() and frames() take no lock. A stack is known
/// by its 64-bit hash alone. Memory of a stack lives as long as the table.
class StackTable {
  public:
    static constexpr uint32_t kMaxStacks = 1u << 18;
    static constexpr StackId kOverflow = kMaxStacks;  ///< any stack that came when the table was full: no frames

    StackTable();
    ~StackTable();
    StackTable(const StackTable&) = delete;
    StackTable& operator=(const StackTable&) = delete;

    /// The stack with this hash, or 0.
    StackId find(uint64_t hash) const noexcept {
        hash = key(hash);
        const Index* index = index_.load(std::memory_order_acquire);
        for (uint64_t i = hash & index->mask;; i = (i + 1) & index->mask) {
            const uint64_t found = index->slots[i].hash.load(std::memory_order_acquire);
            if (found == hash) return index->slots[i].id.load(std::memory_order_relaxed);
            if (found == 0) return 0;
        }
    }

    /// Adds a stack, or returns the one that another thread added first. Takes a lock; throws
    /// std::bad_alloc. kOverflow when the table is full.
    StackId insert(uint64_t hash, std::vector<StoredFrame> frames, bool in_module);

    /// Frames, innermost first; empty for 0 and for an id that was never handed out.
    std::span<const StoredFrame> frames(StackId id) const noexcept;
    bool in_module(StackId id) const noexcept;

    /// Held over a fork.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

    /// Number of stacks.
    uint32_t size() const noexcept { return size_.load(std::memory_order_acquire); }
    bool full() const noexcept { return size() + 1 >= kMaxStacks; }

  private:
    struct Slot {
        std::atomic<uint64_t> hash{0};
        std::atomic<StackId> id{0};
    };
    struct Index {
        explicit Index(uint64_t size) : mask(size - 1), slots(new Slot[size]) {}
        uint64_t mask;
        std::unique_ptr<Slot[]> slots;
    };
    struct Stack {
        std::vector<StoredFrame> frames;
        bool in_module = false;
    };
    static constexpr uint32_t kChunk = 1024;

    static uint64_t key(uint64_t hash) { return hash ? hash : 1; }
    static void put(Index& index, uint64_t hash, StackId id);
    const Stack* stack(StackId id) const noexcept;

    std::atomic<Index*> index_;
    std::atomic<uint32_t> size_{0};
    std::atomic<Stack*> chunks_[kMaxStacks / kChunk] = {};
    std::mutex mutex_;
    std::vector<std::unique_ptr<Index>> indexes_;  ///< all generations: a reader may still be in an old one
};

}  // namespace numsan
