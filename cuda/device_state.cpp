// First use of a context, by a thread whose capture mode is relaxed meanwhile.
#include "cuda/device_state.h"

#include <sys/mman.h>

#include <utility>

#include "cuda/kernel/scan_fatbin.h"
#include "cuda/launch_clock.h"

namespace numsan::gpu {
namespace {

constexpr size_t kRingBytes = HitRing::bytes(kRingCapacity);
constexpr size_t kResultsAt = 2 * kRingBytes, kTimesAt = kResultsAt + kResults * sizeof(RangeResult);
constexpr size_t kReplaysAt = kTimesAt + LaunchClock::kTimes * sizeof(LaunchTime);
constexpr size_t kMappedBytes = kReplaysAt + kLanes * sizeof(ReplayWords);

#define NUMSAN_TRY(name, expression)                                          \
    do {                                                                      \
        if (const CUresult tried = (expression)) return Failure{tried, name}; \
    } while (0)

/// For the report alone: a fact that the driver does not give stays empty.
void describe(const Driver& driver, CUdevice device, DeviceState& state) {
    state.device = device;
    if (driver.device_name(state.device_name, sizeof state.device_name, device) != CUDA_SUCCESS)
        state.device_name[0] = '\0';
    driver.device_attribute(&state.major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    driver.device_attribute(&state.minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

Failure load_kernels(const Driver& driver, DeviceState& state) {
    CUdevice device;
    int multiprocessors;
    NUMSAN_TRY("cuCtxGetDevice", driver.context_device(&device));
    NUMSAN_TRY("cuDeviceGetAttribute",
               driver.device_attribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    state.multiprocessors = static_cast<uint32_t>(multiprocessors);
    describe(driver, device, state);
    NUMSAN_TRY("cuModuleLoadData", driver.module_load(&state.module, numsan_scan_fatbin));
    const std::pair<CUfunction*, const char*> kernels[] = {{&state.scan_small, kScanSmallName},
                                                           {&state.scan_large, kScanLargeName},
                                                           {&state.look_small, kLookSmallName},
                                                           {&state.look_large, kLookLargeName}};
    for (const auto& [kernel, name] : kernels) {
        NUMSAN_TRY("cuModuleGetFunction", driver.module_function(kernel, state.module, name));
        // To answer this a driver that loads lazily has to load the kernel: not at a launch, which may be captured.
        int threads = 0;
        NUMSAN_TRY("cuFuncGetAttribute",
                   driver.function_attribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, *kernel));
        if (threads < int(kBlockThreads)) return Failure{CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "cuFuncGetAttribute"};
    }
    return {};
}

Failure map_host_memory(const Driver& driver, void* mapped, DeviceState& state) {
    CUdeviceptr address;
    NUMSAN_TRY("cuMemHostRegister",
               driver.host_register(mapped, kMappedBytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    auto* bytes = static_cast<unsigned char*>(mapped);
    state.eager.host = reinterpret_cast<HitRing*>(bytes);
    state.replay.host = reinterpret_cast<HitRing*>(bytes + kRingBytes);
    state.results_host = reinterpret_cast<RangeResult*>(bytes + kResultsAt);  // zero, as every fresh page is
    state.times_host = reinterpret_cast<LaunchTime*>(bytes + kTimesAt);
    state.replays_host = reinterpret_cast<ReplayWords*>(bytes + kReplaysAt);
    NUMSAN_TRY("cuMemHostGetDevicePointer", driver.host_pointer(&address, mapped, 0));
    initialise(*state.eager.host, kRingCapacity);
    initialise(*state.replay.host, kRingCapacity);
    state.eager.device = reinterpret_cast<HitRing*>(address);
    state.replay.device = reinterpret_cast<HitRing*>(address + kRingBytes);
    state.results_device = reinterpret_cast<RangeResult*>(address + kResultsAt);
    state.times_device = reinterpret_cast<LaunchTime*>(address + kTimesAt);
    state.replays_device = reinterpret_cast<ReplayWords*>(address + kReplaysAt);
    return {};
}

// On a stream of its own: the default stream may be part of a capture, and waits for the program's work.
Failure fill_memory(const Driver& driver, CUdeviceptr memory, CUstream stream) {
    NUMSAN_TRY("cuMemsetD8Async", driver.fill(memory, 0, sizeof(DeviceMemory), stream));
    static_assert(kNoOffender == ~uint64_t(0));
    for (const size_t offset : {offsetof(DeviceMemory, eager), offsetof(DeviceMemory, replay)}) {
        NUMSAN_TRY("cuMemsetD8Async", driver.fill(memory + offset + offsetof(ScanState, first_offender), 0xff,
                                                  sizeof(ScanState::first_offender), stream));
    }
    NUMSAN_TRY("cuStreamSynchronize", driver.stream_synchronize(stream));
    return {};
}

Failure make_memory(const Driver& driver, DeviceState& state) {
    CUdeviceptr memory;
    NUMSAN_TRY("cuMemAlloc", driver.allocate(&memory, sizeof(DeviceMemory)));
    state.memory = reinterpret_cast<DeviceMemory*>(memory);
    CUstream stream;
    NUMSAN_TRY("cuStreamCreate", driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    const Failure failure = fill_memory(driver, memory, stream);
    driver.stream_destroy(stream);
    return failure;
}

}  // namespace

Failure set_up(const Driver& driver, DeviceState& state) noexcept {
    const RelaxedCapture relaxed(driver);
    NUMSAN_TRY("cuThreadExchangeStreamCaptureMode", relaxed.result());
    const ContextScope scope(driver, state.context);
    NUMSAN_TRY("cuCtxPushCurrent", scope.result());
    NUMSAN_TRY("cuCtxGetId", driver.context_id(nullptr, &state.context_id));
    // Shared: a page of a private mapping that the host writes after a fork is exchanged for a copy, and the device
    // goes on with the old one. A child has it too and must not write there.
    void* mapped = mmap(nullptr, kMappedBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return Failure{CUDA_ERROR_OUT_OF_MEMORY, "mmap"};
    Failure failure = load_kernels(driver, state);
    if (failure.result == CUDA_SUCCESS) failure = make_memory(driver, state);
    if (failure.result == CUDA_SUCCESS) failure = map_host_memory(driver, mapped, state);
    if (failure.result == CUDA_SUCCESS) return failure;
    if (state.module != nullptr) driver.module_unload(state.module);
    if (state.memory != nullptr) driver.free(reinterpret_cast<CUdeviceptr>(state.memory));
    const bool registered = state.eager.host != nullptr && driver.host_unregister(mapped) != CUDA_SUCCESS;
    if (!registered) munmap(mapped, kMappedBytes);
    return failure;
}

}  // namespace numsan::gpu
