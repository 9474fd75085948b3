// Modules and launches. Of the two scan kernels: the fatbin's names stand for the same source, built for the host; of
// functions of the program's own; and of kernels that were translated, as what a program's fatbin has of those names.
#include <dlfcn.h>

#include <cstring>

#include "cuda/kernel/scan_table.h"
#include "tests/cuda/emulation.h"
#include "tests/fakes/cuda/control.h"
#include "tests/fakes/cuda/internal.h"
#include "tests/fakes/cuda/launch_watch.h"
#include "tests/fakes/cuda/translated.h"

namespace fake_cuda {
namespace {

constexpr uint32_t kFatbinMagic = 0xBA55ED50;

template <class Table>
Work kernel(const void* parameter, bool look, uint32_t blocks) {
    const auto table = std::make_shared<Table>();
    std::memcpy(static_cast<void*>(table.get()), parameter, sizeof(Table));
    return [table, look, blocks] {
        using numsan::gpu::Kernel;
        if (!settings.skip_kernels)
            numsan::gpu::run_grid(*table, numsan::gpu::Grid{blocks, settings.threads, settings.shuffle},
                                  look ? Kernel::Look : Kernel::Scan);
    };
}

/// A call of a function of the program's, with copies of its arguments.
Work typed(const CUfunc_st& function, void** parameters) {
    std::vector<std::vector<char>> arguments;
    for (size_t i = 0; function.sizes[i] != 0; ++i) {
        const char* given = static_cast<const char*>(parameters[i]);
        arguments.emplace_back(given, given + function.sizes[i]);
    }
    return [call = function.host, arguments = std::move(arguments)]() mutable {
        std::vector<void*> places;
        for (std::vector<char>& argument : arguments) places.push_back(argument.data());
        call(places.data());
    };
}

CUresult launch(CUfunction function, const unsigned grid[3], const unsigned block[3], unsigned shared, CUstream handle,
                void** parameters, void** extra) {
    CUstream stream;
    FAKE_TRY(resolve(handle, stream));
    if (extra != nullptr || shared != 0) return CUDA_ERROR_NOT_SUPPORTED;
    if (function->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
    if (function->host != nullptr) {
        if (function->sizes != nullptr) return submit(handle, typed(*function, parameters));
        void* argument = *static_cast<void**>(parameters[0]);
        return submit(handle, [call = function->host, argument] { call(argument); });
    }
    if (function->translated != nullptr)
        return submit(handle, translated_launch(*function->translated, stream->context, {grid[0], grid[1], grid[2]},
                                                {block[0], block[1], block[2]}, parameters));
    if (grid[0] == 0 || grid[1] != 1 || grid[2] != 1 || block[0] != numsan::gpu::kBlockThreads || block[1] != 1 ||
        block[2] != 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (settings.skip_kernels) return CUDA_SUCCESS;
    return submit(handle, function->large
                              ? kernel<numsan::gpu::ScanTableLarge>(parameters[0], function->look, grid[0])
                              : kernel<numsan::gpu::ScanTableSmall>(parameters[0], function->look, grid[0]));
}

std::atomic<LaunchWatcher> the_watcher{nullptr};

}  // namespace

CUresult watched(uint32_t callback, const char* name, const void* arguments, const char* kernel,
                 const std::function<CUresult()>& run) {
    const LaunchWatcher watcher = the_watcher;
    if (watcher == nullptr) return run();
    static std::atomic<uint32_t> correlation{0};
    uint64_t data = 0;
    CUcontext context = nullptr;
    if (current(context) != CUDA_SUCCESS) context = nullptr;
    Launch launch{callback,      name,  arguments, kernel, context, context != nullptr ? uint32_t(context->id) : 0,
                  ++correlation, &data, nullptr};
    watcher(launch);
    const CUresult result = run();
    launch.result = &result;
    // A watcher that came in between has not seen the entry.
    if (const LaunchWatcher last = the_watcher; last == watcher) last(launch);
    return result;
}

}  // namespace fake_cuda

extern "C" void fake_cuda_watch_launches(fake_cuda::LaunchWatcher watcher) { fake_cuda::the_watcher = watcher; }

using namespace fake_cuda;

extern "C" {

CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* image) {
    FAKE_ENTER(cuModuleLoadData);
    CUcontext context;
    FAKE_TRY(current(context));
    FAKE_TRY(check_unsafe());
    uint32_t magic;
    std::memcpy(&magic, image, sizeof magic);
    const bool host = std::memcmp(image, kHostImage, sizeof magic) == 0 &&
                      std::strcmp(static_cast<const char*>(image), kHostImage) == 0;
    if (magic != kFatbinMagic && !host) return CUDA_ERROR_INVALID_IMAGE;
    static auto* all = new std::deque<CUmod_st>;  // for the life of the process, as functions are
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    *module = &all->emplace_back(CUmod_st{context, host});
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleUnload(CUmodule) {
    FAKE_ENTER(cuModuleUnload);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    FAKE_ENTER(cuModuleGetFunction);
    const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
    const bool large = is(numsan::gpu::kScanLargeName) || is(numsan::gpu::kLookLargeName);
    const bool look = is(numsan::gpu::kLookSmallName) || is(numsan::gpu::kLookLargeName);
    void (*host)(void*) = nullptr;
    const int* sizes = nullptr;
    const numsan::ptx::Kernel* translated = nullptr;
    if (module->host) {
        host = reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, name));
        if (host == nullptr) return CUDA_ERROR_NOT_FOUND;
        sizes = static_cast<const int*>(dlsym(RTLD_DEFAULT, (std::string(name) + "_sizes").c_str()));
    } else if (!large && !look && !is(numsan::gpu::kScanSmallName)) {
        translated = translated_kernel(name);
        if (translated == nullptr) return CUDA_ERROR_NOT_FOUND;
    }
    static auto* all = new std::deque<CUfunc_st>;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    *function = &all->emplace_back(CUfunc_st{module->context, name, host, sizes, large, look, translated});
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
    FAKE_ENTER(cuFuncGetAttribute);
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) return CUDA_ERROR_NOT_SUPPORTED;
    *value = numsan::gpu::kBlockThreads;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                                CUstream stream, void** parameters, void** extra) {
    const KernelArguments arguments{
        function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, stream, parameters, extra};
    return watched(307, "cuLaunchKernel", &arguments, function->name.c_str(), [&]() -> CUresult {
        FAKE_ENTER(cuLaunchKernel);
        return launch(function, arguments.grid, arguments.block, shared, stream, parameters, extra);
    });
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
    const KernelExArguments arguments{config, function, parameters, extra};
    return watched(652, "cuLaunchKernelEx", &arguments, function->name.c_str(), [&]() -> CUresult {
        FAKE_ENTER(cuLaunchKernelEx);
        if (config->numAttrs != 0) return CUDA_ERROR_NOT_SUPPORTED;
        const unsigned grid[] = {config->gridDimX, config->gridDimY, config->gridDimZ};
        const unsigned block[] = {config->blockDimX, config->blockDimY, config->blockDimZ};
        return launch(function, grid, block, config->sharedMemBytes, config->hStream, parameters, extra);
    });
}

}  // extern "C"
