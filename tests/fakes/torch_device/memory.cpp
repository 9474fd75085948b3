// The caching allocator: a freed block is at once the next one of its size on its stream, with what was in it.
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <tuple>
#include <unordered_map>

#include "control.h"
#include "device.h"

namespace fakegpu {
namespace {

constexpr size_t kRound = 512;  // bytes, as torch's CUDA allocator rounds
constexpr std::align_val_t kAlignment{64};

struct Pending {
    Block* block;
    std::vector<CUevent> events;
};

struct Heap {
    std::mutex mutex;
    std::map<std::tuple<c10::DeviceIndex, c10::StreamId, size_t>, std::vector<Block*>> unused;
    std::map<const char*, Block*> live;  // by device address
    std::vector<Pending> pending;        // freed, but another stream may still use them
    std::atomic<size_t> reused{0};
    std::mutex pinned_mutex;
    std::map<const char*, size_t> pinned;
};
Heap& heap() {
    static Heap* w = new Heap;
    return *w;
}

std::tuple<c10::DeviceIndex, c10::StreamId, size_t> place(const Block& block) {
    return {block.device, block.stream, block.capacity};
}

void collect(Heap& w) {
    for (size_t i = 0; i < w.pending.size();) {
        Pending& p = w.pending[i];
        const auto done = [](CUevent event) { return cuEventQuery(event) == CUDA_SUCCESS; };
        if (!std::all_of(p.events.begin(), p.events.end(), done)) {
            ++i;
            continue;
        }
        for (CUevent event : p.events) cuEventDestroy(event);
        w.unused[place(*p.block)].push_back(p.block);
        w.pending.erase(w.pending.begin() + static_cast<ptrdiff_t>(i));
    }
}

void free_unused(Heap& w) {
    for (auto& [where, blocks] : w.unused) {
        if (blocks.empty()) continue;
        bind(std::get<0>(where));
        FAKEGPU_CHECK(cuCtxSynchronize());
        for (Block* block : blocks) {
            FAKEGPU_CHECK(cuMemFree(reinterpret_cast<CUdeviceptr>(block->memory)));
            ::operator delete(block->shadow, kAlignment);
            delete block;
        }
        blocks.clear();
    }
}

Block* make_block(Heap& w, c10::DeviceIndex device, c10::StreamId stream, size_t capacity) {
    bind(device);
    CUdeviceptr memory = 0;
    CUresult result = cuMemAlloc(&memory, capacity);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        free_unused(w);
        bind(device);
        result = cuMemAlloc(&memory, capacity);
    }
    TORCH_CHECK_WITH(OutOfMemoryError, result != CUDA_ERROR_OUT_OF_MEMORY, "fakegpu out of memory: tried to allocate ",
                     capacity, " bytes");
    FAKEGPU_CHECK(result);
    auto* shadow = static_cast<char*>(::operator new(capacity, kAlignment));
    std::memcpy(shadow, reinterpret_cast<const void*>(memory), capacity);
    return new Block{device, stream, reinterpret_cast<char*>(memory), shadow, capacity, {}, {}};
}

// Runs in destructors: nothing may come out. In a child of fork the memory stays where it is.
void free_block(void* data) noexcept {
    if (in_forked_child()) return;
    auto* block = static_cast<Block*>(data);
    Heap& w = heap();
    Pending pending{block, {}};
    try {
        for (const c10::Stream& user : block->users) {
            bind(user.device_index());
            CUevent event;
            FAKEGPU_CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
            pending.events.push_back(event);
            FAKEGPU_CHECK(cuEventRecord(event, handle(user)));
        }
    } catch (const std::exception&) {
        return;  // the driver gave up, nobody can say when the block is free: it never is
    }
    block->users.clear();
    const std::lock_guard lock(w.mutex);
    block->state.reset();
    w.live.erase(block->memory);
    if (pending.events.empty()) {
        w.unused[place(*block)].push_back(block);
    } else {
        w.pending.push_back(std::move(pending));
    }
}

struct CachingAllocator final : c10::Allocator {
    c10::DataPtr allocate(size_t bytes) override {
        const c10::Device device(kType, current_device());
        if (bytes == 0) return {nullptr, nullptr, &free_block, device};
        const c10::StreamId stream = current_stream(device.index()).id();
        const size_t capacity = (bytes + kRound - 1) / kRound * kRound;
        TORCH_CHECK(!in_forked_child(), "fakegpu was used before fork: use the spawn start method");
        Heap& w = heap();
        const std::lock_guard lock(w.mutex);
        collect(w);
        std::vector<Block*>& free = w.unused[{device.index(), stream, capacity}];
        Block* block;
        if (free.empty()) {
            block = make_block(w, device.index(), stream, capacity);
        } else {
            block = free.back();
            free.pop_back();
            ++w.reused;
        }
        block->state = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                             c10::DataPtr(block->shadow, c10::kCPU),
                                                             c10::GetCPUAllocator(), /*resizable=*/true);
        w.live.emplace(block->memory, block);
        return {block->memory, block, &free_block, device};
    }
    // As nothing is known of the destination but its address: what the shadow has now, in stream order.
    void copy_data(void* to, const void* from, size_t bytes) const override {
        Heap& w = heap();
        Block *target, *source;
        {
            const std::lock_guard lock(w.mutex);
            target = w.live.at(static_cast<char*>(to));
            source = w.live.at(static_cast<const char*>(from));
        }
        std::memcpy(target->shadow, source->shadow, bytes);
        Batch batch;
        batch.add(target->memory, target->shadow, bytes);
        std::move(batch).submit(current_stream(target->device));
    }
};

struct PinnedAllocator final : c10::Allocator {
    static void release(void* memory) noexcept {
        if (memory == nullptr || in_forked_child()) return;
        {
            const std::lock_guard lock(heap().pinned_mutex);
            heap().pinned.erase(static_cast<char*>(memory));
        }
        cuMemFreeHost(memory);
    }
    c10::DataPtr allocate(size_t bytes) override {
        if (bytes == 0) return {nullptr, nullptr, &release, c10::kCPU};
        bind(current_device());
        void* memory;
        FAKEGPU_CHECK(cuMemHostAlloc(&memory, bytes, 0));
        const std::lock_guard lock(heap().pinned_mutex);
        heap().pinned[static_cast<char*>(memory)] = bytes;
        return {memory, memory, &release, c10::kCPU};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &release; }
    void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};

}  // namespace

c10::Allocator* allocator() {
    static auto* it = new CachingAllocator;
    return it;
}

c10::Allocator* pinned_allocator() {
    static auto* it = new PinnedAllocator;
    return it;
}

bool is_pinned(const void* data) {
    Heap& w = heap();
    const auto* byte = static_cast<const char*>(data);
    const std::lock_guard lock(w.pinned_mutex);
    auto after = w.pinned.upper_bound(byte);
    if (after == w.pinned.begin()) return false;
    --after;
    return byte < after->first + after->second;
}

static Block* find(const c10::DataPtr& data) {
    if (data.get() == nullptr) return nullptr;
    if (data.get_deleter() == &free_block) return static_cast<Block*>(data.get_context());
    Heap& w = heap();  // somebody wrapped the deleter
    const std::lock_guard lock(w.mutex);
    const auto found = w.live.find(static_cast<const char*>(data.get()));
    TORCH_CHECK(found != w.live.end(), "fakegpu knows no allocation at ", data.get());
    return found->second;
}

Block* block_of(const c10::Storage& storage) { return find(storage.data_ptr()); }

void record_stream(const c10::DataPtr& data, const c10::Stream& stream) {
    Block* block = find(data);
    if (block == nullptr || (block->device == stream.device_index() && block->stream == stream.id())) return;
    const std::lock_guard lock(heap().mutex);
    auto& users = block->users;
    if (std::find(users.begin(), users.end(), stream) == users.end()) users.push_back(stream);
}

void empty_cache() {
    const std::lock_guard lock(heap().mutex);
    collect(heap());
    free_unused(heap());
}

size_t count_unequal_bytes() {
    synchronize_all();
    Heap& w = heap();
    const std::lock_guard lock(w.mutex);
    size_t unequal = 0;
    for (const auto& [memory, block] : w.live) {
        const size_t bytes = std::min(block->state->nbytes(), block->capacity);
        for (size_t i = 0; i < bytes; ++i) unequal += memory[i] != block->shadow[i];
    }
    return unequal;
}

}  // namespace fakegpu

using namespace fakegpu;

size_t fakegpu_memory_allocated(int device) {
    const std::lock_guard lock(heap().mutex);
    size_t bytes = 0;
    for (const auto& [memory, block] : heap().live)
        if (block->device == device) bytes += block->capacity;
    return bytes;
}

size_t fakegpu_blocks_reused() { return heap().reused; }
void fakegpu_empty_cache() { empty_cache(); }
size_t fakegpu_unequal_bytes() { return count_unequal_bytes(); }
void fakegpu_peek(const void* memory, void* to, size_t bytes) { std::memcpy(to, memory, bytes); }
