// Between the fake driver and the fake CUPTI, which hears of launches from it.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace fake_cuda {

// As CUPTI's generated_cuda_meta.h has them; tests/fakes/cupti/layout_check.cpp compares.
struct KernelArguments {
    CUfunction function;
    unsigned grid[3], block[3], shared;
    CUstream stream;
    void** parameters;
    void** extra;
};
struct KernelExArguments {
    const CUlaunchConfig* config;
    CUfunction function;
    void** parameters;
    void** extra;
};
struct GraphArguments {
    CUgraphExec graph;
    CUstream stream;
};

struct AllocateArguments {
    CUdeviceptr* address;
    size_t bytes;
};
struct AddressArguments {
    CUdeviceptr address;
};
struct SetArguments {
    CUdeviceptr address;
    unsigned int value;
    size_t count;
    CUstream stream;
};
struct CopyArguments {
    CUdeviceptr to, from;
    size_t bytes;
    CUstream stream;  ///< not of a copy that waits
};

/// One call, at its entry and at its exit.
struct Launch {
    uint32_t callback;  ///< number in CUPTI's driver domain
    const char* call;
    const void* arguments;
    const char* kernel;  ///< null for a graph, and for a call that launches nothing
    CUcontext context;   ///< null where the thread has none
    uint32_t context_id;
    uint32_t correlation_id;
    uint64_t* correlation_data;
    const CUresult* result;  ///< null at the entry
};
using LaunchWatcher = void (*)(const Launch&);

}  // namespace fake_cuda

/// One watcher at a time, null for none.
extern "C" __attribute__((visibility("default"))) void fake_cuda_watch_launches(fake_cuda::LaunchWatcher watcher);
