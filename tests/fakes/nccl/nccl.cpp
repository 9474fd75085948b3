// libnccl.so.2 over the fake driver: communicators of ranks in this process, and groups whose work starts at their end.
#include <cuda.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/fakes/nccl/transfers.h"

using fake_nccl::Clique;
using fake_nccl::Part;
using fake_nccl::What;

namespace {

/// What a rank does on a stream, as one kernel.
struct Launch {
    ncclComm_t communicator;
    CUstream stream;
    std::vector<Part> parts;
};

thread_local int depth = 0;
thread_local std::vector<Launch> grouped;

/// In the context of the rank's device, found once for each.
CUfunction kernel_of(CUcontext context) {
    static std::mutex mutex;
    static auto* const found = new std::map<CUcontext, CUfunction>;
    const std::lock_guard lock(mutex);
    CUfunction& kernel = (*found)[context];
    CUmodule module;
    if (kernel == nullptr && cuModuleLoadData(&module, "host functions") == CUDA_SUCCESS)
        cuModuleGetFunction(&kernel, module, "fake_nccl_kernel");
    return kernel;
}

ncclResult_t start(const Launch& launch) {
    CUcontext context;
    if (cuDevicePrimaryCtxRetain(&context, launch.communicator->device) != CUDA_SUCCESS) return ncclUnhandledCudaError;
    cuCtxPushCurrent(context);
    void* work = new Launch(launch);
    void* arguments[] = {&work};
    const CUresult result = cuLaunchKernel(kernel_of(context), 1, 1, 1, 1, 1, 1, 0, launch.stream, arguments, nullptr);
    cuCtxPopCurrent(nullptr);
    return result == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t enqueue(ncclComm_t communicator, cudaStream_t stream, Part part) {
    if (communicator == nullptr || part.type < 0 || part.type >= ncclNumTypes) return ncclInvalidArgument;
    if (part.peer >= communicator->clique->ranks()) return ncclInvalidArgument;
    const int rank = communicator->rank;
    part.number = part.what == What::Send      ? communicator->between[{rank, part.peer}]++
                  : part.what == What::Receive ? communicator->between[{part.peer, -1 - rank}]++
                                               : communicator->collectives++;
    const auto on = reinterpret_cast<CUstream>(stream);
    if (depth == 0) return start({communicator, on, {part}});
    const auto same = std::find_if(grouped.begin(), grouped.end(), [&](const Launch& one) {
        return one.communicator == communicator && one.stream == on;
    });
    if (same != grouped.end())
        same->parts.push_back(part);
    else
        grouped.push_back({communicator, on, {part}});
    return ncclSuccess;
}

struct Identified {
    std::mutex mutex;
    std::map<uint64_t, std::shared_ptr<Clique>> cliques;
    uint64_t last = 0;
};
Identified& identified() {
    static auto* const all = new Identified;
    return *all;
}

constexpr ncclRedOp_t kNoReduction = ncclSum;

}  // namespace

#pragma GCC visibility push(default)

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    std::memset(id, 0, sizeof *id);
    const std::lock_guard lock(identified().mutex);
    const uint64_t number = ++identified().last;
    std::memcpy(id->internal, &number, sizeof number);
    return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank) {
    uint64_t number = 0;
    std::memcpy(&number, id.internal, sizeof number);
    CUdevice device = 0;
    if (cuCtxGetDevice(&device) != CUDA_SUCCESS) return ncclUnhandledCudaError;
    const std::lock_guard lock(identified().mutex);
    std::shared_ptr<Clique>& clique = identified().cliques[number];
    if (clique == nullptr) clique = std::make_shared<Clique>(ranks);
    *communicator = new ncclComm{clique, rank, device, 0, {}};
    return ncclSuccess;
}
ncclResult_t ncclCommInitAll(ncclComm_t* communicators, int ranks, const int* devices) {
    const auto clique = std::make_shared<Clique>(ranks);
    for (int i = 0; i < ranks; ++i)
        communicators[i] = new ncclComm{clique, i, devices != nullptr ? devices[i] : i, 0, {}};
    return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
    delete communicator;
    return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) { return result == ncclSuccess ? "no error" : "it failed"; }
ncclResult_t ncclCommCount(const ncclComm_t communicator, int* count) {
    *count = communicator->clique->ranks();
    return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t communicator, int* device) {
    *device = communicator->device;
    return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t communicator, int* rank) {
    *rank = communicator->rank;
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                           ncclComm_t communicator, cudaStream_t stream) {
    return enqueue(communicator, stream, {What::AllReduce, send, receive, count, type, reduction, -1, 0});
}
ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                        int root, ncclComm_t communicator, cudaStream_t stream) {
    return enqueue(communicator, stream, {What::Reduce, send, receive, count, type, reduction, root, 0});
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t communicator, cudaStream_t stream) {
    return enqueue(communicator, stream, {What::ReduceScatter, send, receive, count, type, reduction, -1, 0});
}
ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
    return enqueue(communicator, stream, {What::Broadcast, send, receive, count, type, kNoReduction, root, 0});
}
ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t communicator,
                       cudaStream_t stream) {
    return ncclBroadcast(buffer, buffer, count, type, root, communicator, stream);
}
ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t stream) {
    return enqueue(communicator, stream, {What::AllGather, send, receive, count, type, kNoReduction, -1, 0});
}
ncclResult_t ncclAlltoAll(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t communicator,
                          cudaStream_t stream) {
    return enqueue(communicator, stream, {What::AlltoAll, send, receive, count, type, kNoReduction, -1, 0});
}
ncclResult_t ncclGather(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                        ncclComm_t communicator, cudaStream_t stream) {
    return enqueue(communicator, stream, {What::Gather, send, receive, count, type, kNoReduction, root, 0});
}
ncclResult_t ncclScatter(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                         ncclComm_t communicator, cudaStream_t stream) {
    return enqueue(communicator, stream, {What::Scatter, send, receive, count, type, kNoReduction, root, 0});
}
ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
    return enqueue(communicator, stream, {What::Send, send, nullptr, count, type, kNoReduction, peer, 0});
}
ncclResult_t ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
    return enqueue(communicator, stream, {What::Receive, nullptr, receive, count, type, kNoReduction, peer, 0});
}

ncclResult_t ncclGroupStart() {
    ++depth;
    return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
    if (depth == 0) return ncclInvalidUsage;
    if (--depth > 0) return ncclSuccess;
    const std::vector<Launch> all = std::exchange(grouped, {});
    ncclResult_t result = ncclSuccess;
    for (const Launch& launch : all) {
        if (const ncclResult_t started = start(launch); started != ncclSuccess) result = started;
    }
    return result;
}
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t*) {
    if (depth == 0) return ncclInvalidUsage;
    if (--depth == 0) grouped.clear();
    return ncclSuccess;
}

// A kernel of the fake driver's, whose one argument is a pointer.
extern "C" void fake_nccl_kernel(void* argument) {
    const std::unique_ptr<const Launch> launch(static_cast<const Launch*>(argument));
    launch->communicator->clique->run(launch->communicator->rank, launch->parts);
}

#pragma GCC visibility pop
