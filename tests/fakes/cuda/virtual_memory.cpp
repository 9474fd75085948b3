// Memory in the order of a stream, and memory that is mapped piece by piece to addresses that were reserved, as
// torch's expandable segments have it. What is not mapped cannot be read.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "tests/fakes/cuda/internal.h"

using namespace fake_cuda;

namespace {

bool is_page(size_t bytes) { return bytes != 0 && bytes % static_cast<size_t>(sysconf(_SC_PAGESIZE)) == 0; }

bool map(CUdeviceptr address, size_t bytes, int access, int file, size_t offset) {
    const int flags = MAP_FIXED | (file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    return mmap(pointer(address), bytes, access, flags, file, static_cast<off_t>(offset)) != MAP_FAILED;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream handle) {
    FAKE_ENTER(cuMemAllocAsync);
    CUstream stream;
    FAKE_TRY(resolve(handle, stream));
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    void* memory = ::operator new(bytes, kAlignment, std::nothrow);
    if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    std::memset(memory, 0xcd, bytes);
    note_memory(stream->context, memory, bytes);
    *address = reinterpret_cast<CUdeviceptr>(memory);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
    FAKE_ENTER(cuMemFreeAsync);
    if (!forget_memory(pointer(address))) return CUDA_ERROR_INVALID_VALUE;
    return submit(handle, [=] { ::operator delete(pointer(address), kAlignment); });
}

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
    FAKE_ENTER(cuMemAddressReserve);
    if (!is_page(bytes)) return CUDA_ERROR_INVALID_VALUE;
    void* memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = reinterpret_cast<CUdeviceptr>(memory);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr address, size_t bytes) {
    FAKE_ENTER(cuMemAddressFree);
    return munmap(pointer(address), bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* wanted,
                             unsigned long long) {
    FAKE_ENTER(cuMemCreate);
    if (!is_page(bytes) || wanted->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
    const int file = memfd_create("fake device memory", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = static_cast<CUmemGenericAllocationHandle>(file);
    return CUDA_SUCCESS;
}

// What is mapped stays.
CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle) {
    FAKE_ENTER(cuMemRelease);
    return close(static_cast<int>(handle)) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                          unsigned long long) {
    FAKE_ENTER(cuMemMap);
    CUcontext context;
    FAKE_TRY(current(context));
    if (!is_page(bytes) || !map(address, bytes, PROT_NONE, static_cast<int>(handle), offset))
        return CUDA_ERROR_INVALID_VALUE;
    note_memory(context, pointer(address), bytes);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access, size_t count) {
    FAKE_ENTER(cuMemSetAccess);
    if (count != 1 || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_NOT_SUPPORTED;
    return mprotect(pointer(address), bytes, PROT_READ | PROT_WRITE) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr address, size_t bytes) {
    FAKE_ENTER(cuMemUnmap);
    if (!forget_memory(pointer(address)) || !map(address, bytes, PROT_NONE, -1, 0)) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

}  // extern "C"
