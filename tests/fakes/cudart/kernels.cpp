#include "tests/fakes/cudart/kernels.h"

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace fake_cudart {
namespace {

/// As fatbinary_section.h has it.
struct Wrapper {
    int magic, version;
    const void* image;
    const void* more;
};
constexpr int kWrapperMagic = 0x466243b1;

struct Binary {
    const void* image;
    CUmodule module = nullptr;
};
struct Kernel {
    Binary* binary;
    std::string name;
    CUfunction function = nullptr;
};

struct Registered {
    std::mutex mutex;
    std::deque<Binary> binaries;
    std::map<const void*, Kernel> kernels;  // by the functions that launch them
};
Registered& registered() {
    static auto* all = new Registered;  // programs unregister as they end
    return *all;
}

/// The shape of a launch between <<<>>> and the call of the function that makes it.
struct Configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;

[[noreturn]] void refuse(const char* what) {
    std::fprintf(stderr, "fake CUDA runtime: %s\n", what);
    std::abort();
}

}  // namespace

CUresult enter() {
    static const CUresult initialised = cuInit(0);
    if (initialised != CUDA_SUCCESS) return initialised;
    CUcontext context = nullptr;
    if (const CUresult result = cuCtxGetCurrent(&context)) return result;
    if (context != nullptr) return CUDA_SUCCESS;
    static CUcontext primary = nullptr;
    static const CUresult retained = cuDevicePrimaryCtxRetain(&primary, 0);
    return retained != CUDA_SUCCESS ? retained : cuCtxSetCurrent(primary);
}

cudaError_t kernel_of(const void* function, CUfunction& kernel) {
    if (const cudaError_t error = said(enter())) return error;
    Registered& all = registered();
    const std::lock_guard lock(all.mutex);
    const auto found = all.kernels.find(function);
    if (found == all.kernels.end()) return said(cudaErrorInvalidDeviceFunction);
    Kernel& one = found->second;
    if (one.binary->module == nullptr) {
        if (const cudaError_t error = said(cuModuleLoadData(&one.binary->module, one.binary->image))) return error;
    }
    if (one.function == nullptr) {
        const CUresult result = cuModuleGetFunction(&one.function, one.binary->module, one.name.c_str());
        if (result != CUDA_SUCCESS) return said(result);
    }
    kernel = one.function;
    return cudaSuccess;
}

}  // namespace fake_cudart

using namespace fake_cudart;

// What nvcc's code calls. Declarations are in headers that only its own compiler takes.
extern "C" {
#pragma GCC visibility push(default)

void** __cudaRegisterFatBinary(void* wrapper) {
    const auto* given = static_cast<const Wrapper*>(wrapper);
    if (given->magic != kWrapperMagic) refuse("what was registered is no binary for the device");
    Registered& all = registered();
    const std::lock_guard lock(all.mutex);
    return reinterpret_cast<void**>(&all.binaries.emplace_back(Binary{given->image}));
}

void __cudaRegisterFatBinaryEnd(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void** binary, const char* function, char*, const char* name, int, uint3*, uint3*, dim3*,
                            dim3*, int*) {
    Registered& all = registered();
    const std::lock_guard lock(all.mutex);
    all.kernels[function] = Kernel{reinterpret_cast<Binary*>(binary), name};
}

void __cudaRegisterVar(void**, char*, char*, const char* name, int, size_t, int, int) {
    refuse((std::string("variables of the device are not known here: ") + name).c_str());
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream) {
    configurations.push_back({grid, block, shared, stream});
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
    if (configurations.empty()) return cudaErrorMissingConfiguration;
    const Configuration& last = configurations.back();
    *grid = last.grid;
    *block = last.block;
    *shared = last.shared;
    *static_cast<cudaStream_t*>(stream) = last.stream;
    configurations.pop_back();
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
    CUfunction found = nullptr;
    const cudaError_t error = kernel_of(function, found);
    *kernel = reinterpret_cast<cudaKernel_t>(found);
    return error;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t stream) {
    if (kernel == nullptr) return said(CUDA_ERROR_INVALID_HANDLE);
    if (const cudaError_t error = said(enter())) return error;
    return said(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                               static_cast<unsigned>(shared), stream, arguments, nullptr));
}

#pragma GCC visibility pop
}  // extern "C"
