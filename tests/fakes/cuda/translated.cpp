#include "tests/fakes/cuda/translated.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/fakes/cuda/control.h"

namespace fake_cuda {
namespace {

struct Translated {
    const std::vector<numsan::ptx::Kernel>* kernels = nullptr;
    TranslatedRun run = nullptr;
};

std::string& path_of_translated() {
    static auto* path = new std::string;
    return *path;
}

const Translated& translated() {
    static const Translated found = [] {
        Translated loaded;
        const std::string& path = path_of_translated();
        if (path.empty()) return loaded;
        void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            std::fprintf(stderr, "fake CUDA driver: %s\n", dlerror());
            return loaded;
        }
        const auto kernels = reinterpret_cast<TranslatedKernels>(dlsym(library, kTranslatedKernels));
        loaded.run = reinterpret_cast<TranslatedRun>(dlsym(library, kTranslatedRun));
        if (kernels == nullptr || loaded.run == nullptr) {
            std::fprintf(stderr, "fake CUDA driver: %s is no library of translated kernels\n", path.c_str());
            return Translated{};
        }
        loaded.kernels = static_cast<const std::vector<numsan::ptx::Kernel>*>(kernels());
        return loaded;
    }();
    return found;
}

}  // namespace

void use_translated(const std::string& path) { path_of_translated() = path; }

const numsan::ptx::Kernel* translated_kernel(const std::string& name) {
    const std::vector<numsan::ptx::Kernel>* const all = translated().kernels;
    if (all == nullptr) return nullptr;
    const auto found =
        std::find_if(all->begin(), all->end(), [&](const numsan::ptx::Kernel& kernel) { return kernel.name == name; });
    return found != all->end() ? &*found : nullptr;
}

Work translated_launch(const numsan::ptx::Kernel& kernel, CUcontext context, numsan::ptx::Dim3 blocks,
                       numsan::ptx::Dim3 threads, void** arguments) {
    std::vector<char> parameters(kernel.parameter_bytes);
    for (size_t i = 0; i < kernel.parameters.size(); ++i)
        std::memcpy(&parameters[kernel.parameters[i].offset], arguments[i], kernel.parameters[i].bytes);
    return [&kernel, context, blocks, threads, parameters = std::move(parameters)] {
        std::vector<numsan::ptx::Memory> memory;
        for (const auto& [data, bytes] : device_memory(context)) memory.push_back({data, bytes, true});
        const numsan::ptx::Launch launch{kernel, parameters.data(), blocks, threads, 1, 0, std::move(memory)};
        std::string fault;
        translated().run(&launch, &fault);
        if (fault.empty()) return;
        std::fprintf(stderr, "fake CUDA driver: %s\n", fault.c_str());
        make_sticky(context, CUDA_ERROR_ILLEGAL_ADDRESS);
    };
}

}  // namespace fake_cuda
