// What the device and its driver are, and whether they do what the engine needs at its start.
#include <sys/mman.h>

#include <fstream>

#include "cuda/kernel/scan_fatbin.h"
#include "tests/gpu/probe/subject.h"

namespace numsan::gpu::probe {
namespace {

struct Attribute {
    const char* name;
    CUdevice_attribute attribute;
};
constexpr Attribute kAttributes[] = {
    {"compute_capability_major", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {"compute_capability_minor", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {"multiprocessors", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {"threads_per_multiprocessor", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {"registers_per_multiprocessor", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    {"l2_bytes", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
    {"clock_khz", CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
    {"memory_clock_khz", CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE},
    {"memory_bus_bits", CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
    {"ecc", CU_DEVICE_ATTRIBUTE_ECC_ENABLED},
    {"compute_mode", CU_DEVICE_ATTRIBUTE_COMPUTE_MODE},
    {"concurrent_kernels", CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS},
    {"unified_addressing", CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
    {"can_map_host_memory", CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY},
    {"host_register_supported", CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
    {"host_pointer_for_registered", CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM},
    {"host_native_atomics", CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED},
    {"pageable_memory_access", CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS},
};

/// Null where the driver does not say.
Json value_of(CUdevice_attribute attribute) {
    int value = 0;
    const CUresult result = gpu().device_attribute(&value, attribute, gpu().device);
    return result == CUDA_SUCCESS ? Json(value) : Json(nullptr);
}

void describe_device(Subject& subject, Json& data) {
    char name[256] = "";
    check("cuDeviceGetName", gpu().device_name(name, sizeof name, gpu().device));
    data["device"] = name;
    data["cuda_of_driver"] = subject.driver.version;
    data["cuda_of_kernels"] = CUDA_VERSION;
    std::ifstream version("/proc/driver/nvidia/version");
    std::string line;
    data["kernel_module"] = std::getline(version, line) ? Json(line) : Json(nullptr);
    for (const Attribute& one : kAttributes) data["attributes"][one.name] = value_of(one.attribute);
    size_t total = 0, free = 0;
    check("cuDeviceTotalMem", gpu().device_memory(&total, gpu().device));
    data["memory_bytes"] = total;
    check("cuMemGetInfo", gpu().memory_info(&free, &total));
    data["free_bytes"] = free;
}

/// A kernel's name and what became of it: loaded, or the call that says no.
Json load_kernel(const Driver& driver, CUmodule module, const char* name) {
    CUfunction kernel = nullptr;
    const Clock::time_point began = Clock::now();
    CUresult result = driver.module_function(&kernel, module, name);
    if (result != CUDA_SUCCESS) return {{"loads", false}, {"why", "cuModuleGetFunction: " + gpu().text_of(result)}};
    int threads = 0;
    result = driver.function_attribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel);
    if (result != CUDA_SUCCESS) return {{"loads", false}, {"why", "cuFuncGetAttribute: " + gpu().text_of(result)}};
    Json told{{"loads", threads >= int(kBlockThreads)}, {"seconds", seconds_since(began)}, {"threads", threads}};
    // The architecture of the code; of PTX that the driver compiled it is the device's own.
    constexpr std::pair<const char*, CUfunction_attribute> kAsked[] = {
        {"registers", CU_FUNC_ATTRIBUTE_NUM_REGS},
        {"local_bytes", CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES},
        {"shared_bytes", CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES},
        {"ptx", CU_FUNC_ATTRIBUTE_PTX_VERSION},
        {"binary", CU_FUNC_ATTRIBUTE_BINARY_VERSION}};
    for (const auto& [key, attribute] : kAsked) {
        int value = 0;
        result = driver.function_attribute(&value, attribute, kernel);
        told[key] = result == CUDA_SUCCESS ? Json(value) : Json(nullptr);
    }
    return told;
}

/// Whether all do. Throws for the module alone, without which there is nothing to ask.
bool load_kernels(const Driver& driver, Json& data) {
    CUmodule module = nullptr;
    const Clock::time_point began = Clock::now();
    check("cuModuleLoadData", driver.module_load(&module, numsan_scan_fatbin));
    data["module_seconds"] = seconds_since(began);
    data["fatbin_bytes"] = numsan_scan_fatbin_size;
    Json& kernels = data["kernels"];
    bool all = true;
    for (const char* name : kKernelNames) {
        kernels[name] = load_kernel(driver, module, name);
        all = all && kernels[name]["loads"];
    }
    check("cuModuleUnload", driver.module_unload(module));
    return all;
}

/// Whether the host sees what the device writes to a page that is registered as the engine registers its rings.
bool map_host_memory(const Driver& driver, Json& data) {
    constexpr size_t kBytes = 1 << 20;
    Json& told = data["host_memory"];
    void* mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw Wrong("mmap of the host's memory failed");
    const auto call = [&](const char* name, CUresult result) {
        told[name] = gpu().text_of(result);
        return result == CUDA_SUCCESS;
    };
    CUdeviceptr address = 0;
    bool seen = false;
    const bool registered =
        call("cuMemHostRegister",
             driver.host_register(mapped, kBytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    if (registered && call("cuMemHostGetDevicePointer", driver.host_pointer(&address, mapped, 0))) {
        told["same_address"] = address == reinterpret_cast<CUdeviceptr>(mapped);
        check("cuMemsetD8Async", gpu().fill(address + kBytes / 2, 0x5a, 1, gpu().stream));
        check("cuStreamSynchronize", gpu().stream_synchronize(gpu().stream));
        seen = static_cast<volatile unsigned char*>(mapped)[kBytes / 2] == 0x5a;
    }
    told["works"] = seen;
    if (!registered || driver.host_unregister(mapped) == CUDA_SUCCESS) munmap(mapped, kBytes);
    return seen;
}

}  // namespace

void facts(Phase& phase) {
    Subject& subject = phase.subject;
    Json& data = phase.data;
    describe_device(subject, data);
    phase.note();
    const bool loads = load_kernels(subject.driver, data);
    phase.note();
    const bool maps = map_host_memory(subject.driver, data);
    phase.note();
    if (!loads) throw Wrong("a kernel does not load: " + data["kernels"].dump());
    if (!maps) throw Wrong("host memory cannot be mapped: " + data["host_memory"].dump());
    const Clock::time_point began = Clock::now();
    subject.state();
    data["set_up_seconds"] = seconds_since(began);
    data["engine_bytes"] = sizeof(DeviceMemory);
    const Json& attributes = data["attributes"];
    const auto text = [&](const char* name) { return attributes[name].dump(); };
    phase.line = data["device"].get<std::string>() + ", compute capability " + text("compute_capability_major") + "." +
                 text("compute_capability_minor") + ", " + text("multiprocessors") + " multiprocessors, L2 " +
                 text("l2_bytes") + " bytes, CUDA " + std::to_string(subject.driver.version) +
                 "; all kernels load, host memory is mapped";
}

}  // namespace numsan::gpu::probe
