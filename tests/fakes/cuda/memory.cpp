// Memory of contexts, all of it on the host: device addresses are host addresses.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "tests/fakes/cuda/internal.h"
#include "tests/fakes/cuda/launch_watch.h"

namespace fake_cuda {
namespace {

struct Block {
    CUcontext context;
    bool device;
    bool owned;  // else registered: the host's own
    size_t bytes;
};
struct Blocks {
    std::mutex mutex;
    std::map<void*, Block> all;
};
Blocks& blocks() {
    static Blocks* b = new Blocks;
    return *b;
}

CUresult allocate(void** memory, size_t bytes, bool device) {
    CUcontext context;
    FAKE_TRY(current(context));
    FAKE_TRY(check_unsafe());
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    *memory = ::operator new(bytes, kAlignment, std::nothrow);
    if (*memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    std::memset(*memory, 0xcd, bytes);
    const std::lock_guard lock(blocks().mutex);
    blocks().all[*memory] = Block{context, device, true, bytes};
    return CUDA_SUCCESS;
}

CUresult release(void* memory, bool device, bool owned) {
    CUcontext context;
    FAKE_TRY(current(context));
    FAKE_TRY(check_unsafe());
    {
        const std::lock_guard lock(blocks().mutex);
        const auto found = blocks().all.find(memory);
        if (found == blocks().all.end() || found->second.device != device || found->second.owned != owned)
            return CUDA_ERROR_INVALID_VALUE;
        blocks().all.erase(found);
    }
    if (owned) ::operator delete(memory, kAlignment);
    return CUDA_SUCCESS;
}

CUresult copy(CUstream stream, void* to, const void* from, size_t bytes) {
    return submit(stream, [=] { std::memcpy(to, from, bytes); });
}

}  // namespace

void note_memory(CUcontext context, void* memory, size_t bytes) {
    const std::lock_guard lock(blocks().mutex);
    blocks().all[memory] = Block{context, true, false, bytes};
}

bool forget_memory(void* memory) {
    const std::lock_guard lock(blocks().mutex);
    return blocks().all.erase(memory) == 1;
}

std::vector<std::pair<const void*, size_t>> device_memory(CUcontext context) {
    std::vector<std::pair<const void*, size_t>> found;
    const std::lock_guard lock(blocks().mutex);
    for (const auto& [memory, block] : blocks().all) {
        if (block.context == context) found.emplace_back(memory, block.bytes);
    }
    return found;
}

void free_memory(CUcontext context) {
    const std::lock_guard lock(blocks().mutex);
    for (auto at = blocks().all.begin(); at != blocks().all.end();) {
        if (at->second.context != context) {
            ++at;
            continue;
        }
        if (at->second.owned) ::operator delete(at->first, kAlignment);
        at = blocks().all.erase(at);
    }
}

}  // namespace fake_cuda

using namespace fake_cuda;

extern "C" {

CUresult CUDAAPI cuMemGetInfo(size_t* free, size_t* total) {
    FAKE_ENTER(cuMemGetInfo);
    CUcontext context;
    FAKE_TRY(current(context));
    size_t taken = 0;
    const std::lock_guard lock(blocks().mutex);
    for (const auto& [address, block] : blocks().all) taken += block.device ? block.bytes : 0;
    *total = kDeviceBytes;
    *free = kDeviceBytes - std::min(taken, kDeviceBytes);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr* address, size_t bytes) {
    const AllocateArguments arguments{address, bytes};
    return watched(243, "cuMemAlloc_v2", &arguments, nullptr, [&]() -> CUresult {
        FAKE_ENTER(cuMemAlloc);
        void* memory;
        FAKE_TRY(allocate(&memory, bytes, true));
        *address = reinterpret_cast<CUdeviceptr>(memory);
        return CUDA_SUCCESS;
    });
}

CUresult CUDAAPI cuMemFree(CUdeviceptr address) {
    const AddressArguments arguments{address};
    return watched(245, "cuMemFree_v2", &arguments, nullptr, [&]() -> CUresult {
        FAKE_ENTER(cuMemFree);
        return release(pointer(address), true, true);
    });
}

CUresult CUDAAPI cuMemAllocHost(void** memory, size_t bytes) {
    FAKE_ENTER(cuMemAllocHost);
    return allocate(memory, bytes, false);
}

CUresult CUDAAPI cuMemHostAlloc(void** memory, size_t bytes, unsigned int) {
    FAKE_ENTER(cuMemHostAlloc);
    return allocate(memory, bytes, false);
}

CUresult CUDAAPI cuMemFreeHost(void* memory) {
    FAKE_ENTER(cuMemFreeHost);
    return release(memory, false, true);
}

CUresult CUDAAPI cuMemHostRegister(void* memory, size_t bytes, unsigned int) {
    FAKE_ENTER(cuMemHostRegister);
    CUcontext context;
    FAKE_TRY(current(context));
    FAKE_TRY(check_unsafe());
    if (memory == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(blocks().mutex);
    const bool fresh = blocks().all.emplace(memory, Block{context, false, false, bytes}).second;
    return fresh ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

CUresult CUDAAPI cuMemHostUnregister(void* memory) {
    FAKE_ENTER(cuMemHostUnregister);
    return release(memory, false, false);
}

CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr* address, void* memory, unsigned int flags) {
    FAKE_ENTER(cuMemHostGetDevicePointer);
    const std::lock_guard lock(blocks().mutex);
    const auto found = blocks().all.find(memory);
    if (found == blocks().all.end() || found->second.device || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *address = reinterpret_cast<CUdeviceptr>(memory);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuPointerGetAttribute(void* answer, CUpointer_attribute attribute, CUdeviceptr address) {
    FAKE_ENTER(cuPointerGetAttribute);
    if (attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(blocks().mutex);
    const auto after = blocks().all.upper_bound(pointer(address));
    if (after == blocks().all.begin()) return CUDA_ERROR_INVALID_VALUE;
    const auto& [begin, block] = *std::prev(after);
    if (address - reinterpret_cast<CUdeviceptr>(begin) >= block.bytes) return CUDA_ERROR_INVALID_VALUE;
    *static_cast<unsigned int*>(answer) = block.device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    const SetArguments arguments{to, value, count, stream};
    return watched(216, "cuMemsetD8Async", &arguments, nullptr, [&]() -> CUresult {
        FAKE_ENTER(cuMemsetD8Async);
        return submit(stream, [=] { std::memset(pointer(to), value, count); });
    });
}

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
    const SetArguments arguments{to, value, count, stream};
    return watched(220, "cuMemsetD32Async", &arguments, nullptr, [&]() -> CUresult {
        FAKE_ENTER(cuMemsetD32Async);
        if (to % sizeof value != 0) return CUDA_ERROR_INVALID_VALUE;
        return submit(stream, [=] {
            for (size_t i = 0; i < count; ++i)
                std::memcpy(static_cast<char*>(pointer(to)) + i * sizeof value, &value, sizeof value);
        });
    });
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    const CopyArguments arguments{to, from, bytes, stream};
    return watched(306, "cuMemcpyAsync", &arguments, nullptr, [&]() -> CUresult {
        FAKE_ENTER(cuMemcpyAsync);
        return copy(stream, pointer(to), pointer(from), bytes);
    });
}

// The host's memory is taken as pinned: it is read when the stream gets there.
CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
    const CopyArguments arguments{to, reinterpret_cast<CUdeviceptr>(from), bytes, stream};
    return watched(277, "cuMemcpyHtoDAsync_v2", &arguments, nullptr, [&]() -> CUresult {
        FAKE_ENTER(cuMemcpyHtoDAsync);
        return copy(stream, pointer(to), from, bytes);
    });
}

CUresult CUDAAPI cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
    const CopyArguments arguments{reinterpret_cast<CUdeviceptr>(to), from, bytes, stream};
    return watched(279, "cuMemcpyDtoHAsync_v2", &arguments, nullptr, [&]() -> CUresult {
        FAKE_ENTER(cuMemcpyDtoHAsync);
        return copy(stream, to, pointer(from), bytes);
    });
}

CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    const CopyArguments arguments{to, from, bytes, stream};
    return watched(281, "cuMemcpyDtoDAsync_v2", &arguments, nullptr, [&]() -> CUresult {
        FAKE_ENTER(cuMemcpyDtoDAsync);
        return copy(stream, pointer(to), pointer(from), bytes);
    });
}

}  // extern "C"
