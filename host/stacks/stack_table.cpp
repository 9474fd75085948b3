// Insertion, growth and eviction of the stack table; the look-up that every operator makes is in the header.
#include "host/stacks/stack_table.h"

#include <algorithm>
#include <utility>

namespace numsan {

StackTable::StackTable(Drop drop, Limits limits) : limits_(limits), drop_(std::move(drop)) {
    indexes_.push_back(std::make_unique<Index>(4096));
    index_.store(indexes_.back().get(), std::memory_order_release);
}

StackTable::~StackTable() = default;

/// Of a stack that was not found in this round so far: notes that it was. Nothing is believed if the index changed
/// meanwhile, as in AtomicRecord.
StackId StackTable::find_cold(uint64_t hash) const noexcept {
    const uint32_t round = round_.load(std::memory_order_acquire);
    if ((round & 1) != 0) return 0;
    const Index* index = index_.load(std::memory_order_acquire);
    for (uint64_t i = hash & index->mask, looked = 0; looked <= index->mask; i = (i + 1) & index->mask, ++looked) {
        Slot& slot = index->slots[i];
        const uint64_t found = slot.hash.load(std::memory_order_acquire);
        if (found == 0) return 0;
        if (found != hash) continue;
        uint64_t use = slot.use.load(std::memory_order_acquire);
        if (use == 0) return 0;
        const auto id = static_cast<StackId>(use);
        if (use >> 32 < round)  // a later round is another thread's, of a rebuilt index maybe
            slot.use.compare_exchange_strong(use, uint64_t(round) << 32 | id, std::memory_order_acq_rel);
        return round_.load(std::memory_order_acquire) == round ? id : 0;
    }
    return 0;
}

void StackTable::put(Index& index, uint64_t hash, uint64_t use) noexcept {
    uint64_t i = hash & index.mask;
    while (index.slots[i].hash.load(std::memory_order_relaxed) != 0) i = (i + 1) & index.mask;
    index.slots[i].use.store(use, std::memory_order_release);
    index.slots[i].hash.store(hash, std::memory_order_release);
}

StackTable::Stack& StackTable::at(uint32_t place) const noexcept { return chunks_[place / kChunk][place % kChunk]; }

StackTable::Stack* StackTable::stack(StackId id) const noexcept {
    const uint32_t place = id % kPlaces;
    if (id == 0 || place == 0 || place > places_) return nullptr;
    Stack& found = at(place);
    return found.id == id ? &found : nullptr;
}

StackTable::Inserted StackTable::insert(uint64_t hash, std::vector<StoredFrame> frames, bool in_module) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const StackId known = find(hash)) return {known, false};
    frames.shrink_to_fit();
    const uint64_t count = frames.size() + 1;  // an empty stack has a place, too
    if (size() >= limits_.stacks || frame_count_ + count > limits_.frames) make_room();
    Index& index = index_with_room();
    const uint32_t place = take_place();
    Stack& added = at(place);
    added.id = (in_module ? kInModule : 0) | ((added.generation % kGenerations) << kPlaceBits) | place;
    added.kept = 0;
    added.hash = key(hash);
    added.frames = std::move(frames);
    frame_count_ += count;
    since_round_ += std::max<uint64_t>(count, limits_.frames / std::max(limits_.stacks, 1u));
    size_.fetch_add(1, std::memory_order_relaxed);
    ++used_slots_;
    put(index, added.hash, uint64_t(round_.load(std::memory_order_relaxed)) << 32 | added.id);
    if (since_round_ > limits_.frames / 16) {
        since_round_ = 0;
        round_.fetch_add(2, std::memory_order_release);
    }
    return {added.id, true};
}

uint32_t StackTable::take_place() {
    if (!free_.empty()) {
        const uint32_t place = free_.back();
        free_.pop_back();
        return place;
    }
    const uint32_t place = places_ + 1;
    if (chunks_[place / kChunk] == nullptr) chunks_[place / kChunk] = std::make_unique<Stack[]>(kChunk);
    places_ = place;
    return place;
}

/// At most half of the slots are used.
StackTable::Index& StackTable::index_with_room() {
    Index* index = indexes_.back().get();
    if ((used_slots_ + 1) * 2 <= index->mask) return *index;
    if (uint64_t(size() + 1) * 4 <= index->mask) {  // most slots are retired ones
        rebuild();
        return *index;
    }
    auto bigger = std::make_unique<Index>((index->mask + 1) * 2);
    used_slots_ = 0;
    for (uint64_t i = 0; i <= index->mask; ++i) {
        const uint64_t hash = index->slots[i].hash.load(std::memory_order_relaxed);
        if (hash == 0 || hash == kRetired) continue;
        put(*bigger, hash, index->slots[i].use.load(std::memory_order_relaxed));
        ++used_slots_;
    }
    indexes_.push_back(std::move(bigger));
    index_.store(indexes_.back().get(), std::memory_order_release);
    return *indexes_.back();
}

/// The index anew, of the stacks that are left; readers meanwhile find nothing, and none is counted as found.
void StackTable::rebuild() {
    Index& index = *indexes_.back();
    const uint32_t round = round_.load(std::memory_order_relaxed);
    round_.store(round + 1, std::memory_order_release);
    for (uint64_t i = 0; i <= index.mask; ++i) {
        index.slots[i].use.store(0, std::memory_order_release);
        index.slots[i].hash.store(0, std::memory_order_release);
    }
    used_slots_ = 0;
    for (uint32_t place = 1; place <= places_; ++place) {
        const Stack& left = at(place);
        if (left.id == 0 || left.hash == 0) continue;
        put(index, left.hash, uint64_t(round + 2) << 32 | left.id);
        ++used_slots_;
    }
    round_.store(round + 2, std::memory_order_release);
}

void StackTable::give_up(uint32_t place) {
    Stack& gone = at(place);
    if (drop_) drop_(gone.frames);
    frame_count_ -= gone.frames.size() + 1;
    gone.frames = {};
    gone.id = 0;
    gone.hash = 0;
    ++gone.generation;
    free_.push_back(place);
    size_.fetch_sub(1, std::memory_order_relaxed);
    forgotten_.fetch_add(1, std::memory_order_relaxed);
}

void StackTable::make_room() {
    const Index& index = *indexes_.back();
    for (uint64_t i = 0; i <= index.mask; ++i) {
        const uint64_t use = index.slots[i].use.load(std::memory_order_relaxed);
        if (Stack* found = stack(static_cast<StackId>(use)); found != nullptr)
            found->round = static_cast<uint32_t>(use >> 32);
    }
    std::vector<uint32_t> coldest_first;
    coldest_first.reserve(size());
    free_.reserve(places_);
    for (uint32_t place = 1; place <= places_; ++place) {
        if (at(place).id != 0) coldest_first.push_back(place);
    }
    const auto colder = [&](uint32_t a, uint32_t b) {
        const Stack &one = at(a), &other = at(b);
        return std::pair(one.kept != 0, one.round) < std::pair(other.kept != 0, other.round);
    };
    std::sort(coldest_first.begin(), coldest_first.end(), colder);
    const uint32_t stacks = limits_.stacks - limits_.stacks / 4;
    const uint32_t frames = limits_.frames - limits_.frames / 4;
    for (const uint32_t place : coldest_first) {
        if (size() <= stacks && frame_count_ <= frames) break;
        give_up(place);
    }
    rebuild();
}

std::vector<StoredFrame> StackTable::frames(StackId id) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Stack* found = stack(id);
    return found != nullptr ? found->frames : std::vector<StoredFrame>();
}

bool StackTable::holds(StackId id) const noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    return stack(id) != nullptr;
}

void StackTable::keep(StackId id) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (Stack* found = stack(id); found != nullptr) ++found->kept;
}

void StackTable::release(StackId id) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (Stack* found = stack(id); found != nullptr && found->kept > 0) --found->kept;
}

void StackTable::retire(StackId id) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    Stack* found = stack(id);
    if (found == nullptr || found->hash == 0) return;
    const Index& index = *indexes_.back();
    for (uint64_t i = found->hash & index.mask;; i = (i + 1) & index.mask) {
        const uint64_t hash = index.slots[i].hash.load(std::memory_order_relaxed);
        if (hash == 0) break;
        if (hash != found->hash) continue;
        found->round = static_cast<uint32_t>(index.slots[i].use.load(std::memory_order_relaxed) >> 32);
        index.slots[i].use.store(0, std::memory_order_release);
        index.slots[i].hash.store(kRetired, std::memory_order_release);
        break;
    }
    found->hash = 0;
}

}  // namespace numsan
