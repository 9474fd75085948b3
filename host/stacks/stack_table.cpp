// Insertion and growth of the stack table; lookups are in the header.
#include "host/stacks/stack_table.h"

namespace numsan {

StackTable::StackTable() {
    indexes_.push_back(std::make_unique<Index>(4096));
    index_.store(indexes_.back().get(), std::memory_order_release);
}

StackTable::~StackTable() {
    for (auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
}

void StackTable::put(Index& index, uint64_t hash, StackId id) {
    uint64_t i = hash & index.mask;
    while (index.slots[i].hash.load(std::memory_order_relaxed) != 0) i = (i + 1) & index.mask;
    index.slots[i].id.store(id, std::memory_order_relaxed);
    index.slots[i].hash.store(hash, std::memory_order_release);
}

StackId StackTable::insert(uint64_t hash, std::vector<StoredFrame> frames, bool in_module) {
    std::lock_guard lock(mutex_);
    if (const StackId known = find(hash)) return known;
    const uint32_t count = size_.load(std::memory_order_relaxed);
    if (full()) return kOverflow;
    Index* index = indexes_.back().get();
    if (uint64_t(count + 1) * 2 > index->mask) {
        auto bigger = std::make_unique<Index>((index->mask + 1) * 2);
        for (uint64_t i = 0; i <= index->mask; ++i) {
            const uint64_t old = index->slots[i].hash.load(std::memory_order_relaxed);
            if (old) put(*bigger, old, index->slots[i].id.load(std::memory_order_relaxed));
        }
        indexes_.push_back(std::move(bigger));
        index = indexes_.back().get();
        index_.store(index, std::memory_order_release);
    }
    const StackId id = count + 1;
    auto& chunk = chunks_[id / kChunk];
    Stack* stacks = chunk.load(std::memory_order_relaxed);
    if (!stacks) {
        stacks = new Stack[kChunk];
        chunk.store(stacks, std::memory_order_release);
    }
    frames.shrink_to_fit();
    stacks[id % kChunk].frames = std::move(frames);
    stacks[id % kChunk].in_module = in_module;
    size_.store(id, std::memory_order_release);
    put(*index, key(hash), id);
    return id;
}

const StackTable::Stack* StackTable::stack(StackId id) const noexcept {
    if (id == 0 || id > size_.load(std::memory_order_acquire)) return nullptr;
    return &chunks_[id / kChunk].load(std::memory_order_acquire)[id % kChunk];
}

std::span<const StoredFrame> StackTable::frames(StackId id) const noexcept {
    const Stack* found = stack(id);
    return found ? std::span<const StoredFrame>(found->frames) : std::span<const StoredFrame>();
}

bool StackTable::in_module(StackId id) const noexcept {
    const Stack* found = stack(id);
    return found && found->in_module;
}

}  // namespace numsan
