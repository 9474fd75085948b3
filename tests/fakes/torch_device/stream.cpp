// Devices, contexts, streams and events on the driver; what torch asks of them; holding a stream.
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "control.h"
#include "device.h"
#include "tests/fakes/cuda/control.h"

namespace fakegpu {
namespace {

constexpr int kMaxDevices = 8;
constexpr int kPoolStreams = 32;  // a device, as torch's own pools have

struct Device {
    std::once_flag once;
    std::atomic<CUcontext> context{nullptr};
    std::mutex mutex;
    std::array<CUstream, kPoolStreams + 1> streams{};  // [0] stays null: the legacy stream
    std::atomic<unsigned> next{0};
};

/// Where a stream waits until it is let go. Numbered, so that a new hold does not catch a stream that leaves the last.
struct Gate {
    uint64_t placed = 0, opened = 0;
};

struct World {
    std::array<Device, kMaxDevices> devices;
    std::atomic<bool> forked{false};
    std::atomic<int> delay_us{0};
    std::mutex gates_mutex;
    std::condition_variable gates_changed;
    std::map<std::pair<c10::DeviceIndex, c10::StreamId>, Gate> gates;
};

int setting(const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::atoi(text) : otherwise;
}

World& world() {
    static World* w = [] {
        auto* made = new World;
        made->delay_us = setting("FAKEGPU_DELAY_US", 0);
        return made;
    }();
    return *w;
}

thread_local c10::DeviceIndex device_of_thread = 0;
thread_local std::array<c10::StreamId, kMaxDevices> stream_of_thread{};

c10::Stream stream_of(c10::DeviceIndex device, c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(kType, device), id);
}

struct Job {
    std::function<void()> work;
    bool keep;  // a graph replays it
};

void CUDA_CB run_job(void* data) {
    auto* job = static_cast<Job*>(data);
    if (const int delay = world().delay_us) std::this_thread::sleep_for(std::chrono::microseconds(delay));
    job->work();
    if (!job->keep) delete job;
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
    c10::DeviceType type() const override { return kType; }
    c10::Device getDevice() const override { return {kType, current_device()}; }
    c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }

    c10::Device exchangeDevice(c10::Device device) const override {
        const c10::Device before = getDevice();
        setDevice(device);
        return before;
    }
    void setDevice(c10::Device device) const override {
        TORCH_CHECK(device.index() < device_count(), "fakegpu has no device ", static_cast<int>(device.index()));
        uncheckedSetDevice(device);
    }
    void uncheckedSetDevice(c10::Device device) const noexcept override {
        if (device.index() >= 0) device_of_thread = device.index();
    }

    c10::Stream getStream(c10::Device device) const override { return current_stream(device.index()); }
    c10::Stream getDefaultStream(c10::Device device) const override {
        return stream_of(device.has_index() ? device.index() : current_device(), 0);
    }
    c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getNewStream(device, 0); }
    c10::Stream getNewStream(c10::Device device, int) const override {
        const auto index = device.has_index() ? device.index() : current_device();
        return stream_of(index, 1 + world().devices.at(index).next++ % kPoolStreams);
    }
    c10::Stream exchangeStream(c10::Stream stream) const override {
        const c10::Stream before = current_stream(stream.device_index());
        stream_of_thread.at(stream.device_index()) = stream.id();
        return before;
    }
    /// FAKEGPU_NO_HANDLES=1: as a backend that does not say, and here it tells each time that it was asked.
    void* getStreamNativeHandle(const c10::Stream stream) const override {
        static const bool refuses = setting("FAKEGPU_NO_HANDLES", 0) != 0;
        if (refuses) std::fputs("fakegpu: asked for a handle\n", stderr);
        return refuses ? DeviceGuardImplInterface::getStreamNativeHandle(stream) : handle(stream);
    }

    void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
        bind(stream.device_index());
        if (*event == nullptr) FAKEGPU_CHECK(cuEventCreate(reinterpret_cast<CUevent*>(event), CU_EVENT_DISABLE_TIMING));
        FAKEGPU_CHECK(cuEventRecord(static_cast<CUevent>(*event), handle(stream)));
    }
    void block(void* event, const c10::Stream& stream) const override {
        if (event == nullptr) return;
        bind(stream.device_index());
        FAKEGPU_CHECK(cuStreamWaitEvent(handle(stream), static_cast<CUevent>(event), 0));
    }
    bool queryEvent(void* event) const override {
        if (event == nullptr) return true;
        const CUresult result = cuEventQuery(static_cast<CUevent>(event));
        if (result != CUDA_ERROR_NOT_READY) FAKEGPU_CHECK(result);
        return result == CUDA_SUCCESS;
    }
    void synchronizeEvent(void* event) const override {
        if (event != nullptr) FAKEGPU_CHECK(cuEventSynchronize(static_cast<CUevent>(event)));
    }
    void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
        if (event != nullptr && !in_forked_child()) cuEventDestroy(static_cast<CUevent>(event));
    }

    bool queryStream(const c10::Stream& stream) const override {
        bind(stream.device_index());
        const CUresult result = cuStreamQuery(handle(stream));
        if (result != CUDA_ERROR_NOT_READY) FAKEGPU_CHECK(result);
        return result == CUDA_SUCCESS;
    }
    void synchronizeStream(const c10::Stream& stream) const override { synchronize(stream); }
    void synchronizeDevice(c10::DeviceIndex device) const override {
        bind(device < 0 ? current_device() : device);
        FAKEGPU_CHECK(cuCtxSynchronize());
    }
    void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
        record_stream(data, stream);
    }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

}  // namespace

c10::DeviceIndex device_count() noexcept {
    static const int count = std::min(std::max(setting("FAKEGPU_DEVICES", 2), 0), kMaxDevices);
    return static_cast<c10::DeviceIndex>(count);
}

c10::DeviceIndex current_device() noexcept { return device_of_thread; }
bool in_forked_child() noexcept { return world().forked; }
bool has_context(c10::DeviceIndex device) noexcept { return world().devices.at(device).context != nullptr; }

void bind(c10::DeviceIndex index) {
    TORCH_CHECK(!in_forked_child(), "fakegpu was used before fork: use the spawn start method");
    Device& device = world().devices.at(index);
    std::call_once(device.once, [&] {
        static std::once_flag driver;
        std::call_once(driver, [] {
            fake_cuda::set_devices(device_count());
            FAKEGPU_CHECK(cuInit(0));
            pthread_atfork(nullptr, nullptr, [] { world().forked = true; });
        });
        CUcontext context;
        FAKEGPU_CHECK(cuDevicePrimaryCtxRetain(&context, index));
        device.context = context;
    });
    FAKEGPU_CHECK(cuCtxSetCurrent(device.context));
}

c10::Stream current_stream(c10::DeviceIndex device) {
    if (device < 0) device = current_device();
    return stream_of(device, stream_of_thread.at(device));
}

CUstream handle(const c10::Stream& stream) {
    if (stream.id() == 0) return nullptr;
    Device& device = world().devices.at(stream.device_index());
    const std::lock_guard lock(device.mutex);
    CUstream& native = device.streams.at(stream.id());
    if (native == nullptr) {
        bind(stream.device_index());
        FAKEGPU_CHECK(cuStreamCreate(&native, CU_STREAM_NON_BLOCKING));
    }
    return native;
}

namespace {

Job* job_on(const c10::Stream& stream, std::function<void()> work) {
    bind(stream.device_index());
    CUstreamCaptureStatus capture;
    FAKEGPU_CHECK(cuStreamIsCapturing(handle(stream), &capture));
    return new Job{std::move(work), capture == CU_STREAM_CAPTURE_STATUS_ACTIVE};
}

/// A kernel's function in the context of a device.
CUfunction kernel_of(c10::DeviceIndex device, const char* kernel) {
    static std::mutex mutex;
    static std::map<std::pair<CUcontext, std::string>, CUfunction> known;
    const CUcontext context = world().devices.at(device).context;
    const std::lock_guard lock(mutex);
    CUfunction& function = known[{context, kernel}];
    if (function != nullptr) return function;
    CUmodule module;
    FAKEGPU_CHECK(cuModuleLoadData(&module, fake_cuda::kHostImage));
    FAKEGPU_CHECK(cuModuleGetFunction(&function, module, kernel));
    return function;
}

}  // namespace

void run_launched(void* job) { run_job(job); }

void enqueue(const c10::Stream& stream, std::function<void()> work) {
    Job* job = job_on(stream, std::move(work));
    const CUresult result = cuLaunchHostFunc(handle(stream), run_job, job);
    if (result != CUDA_SUCCESS) delete job;
    TORCH_CHECK(result == CUDA_SUCCESS, "cuLaunchHostFunc failed: CUresult ", static_cast<int>(result));
}

bool launches_kernels() {
    static const bool launches = setting("FAKEGPU_KERNELS", 0) != 0;
    return launches;
}

void launch(const c10::Stream& stream, const char* kernel, size_t items, std::function<void()> work) {
    if (!launches_kernels()) return enqueue(stream, std::move(work));
    constexpr unsigned kThreads = 256;
    const auto blocks = static_cast<unsigned>((items + kThreads - 1) / kThreads);
    Job* job = job_on(stream, std::move(work));
    void* parameters[] = {&job};
    const CUresult result = cuLaunchKernel(kernel_of(stream.device_index(), kernel), blocks, 1, 1, kThreads, 1, 1, 0,
                                           handle(stream), parameters, nullptr);
    if (result != CUDA_SUCCESS) delete job;
    TORCH_CHECK(result == CUDA_SUCCESS, "cuLaunchKernel failed: CUresult ", static_cast<int>(result));
}

void synchronize(const c10::Stream& stream) {
    bind(stream.device_index());
    FAKEGPU_CHECK(cuStreamSynchronize(handle(stream)));
}

void synchronize_all() {
    for (c10::DeviceIndex device = 0; device < device_count(); ++device) {
        if (!has_context(device)) continue;
        bind(device);
        FAKEGPU_CHECK(cuCtxSynchronize());
    }
}

void order(const c10::Stream& waiter, const c10::Stream& waited) {
    if (waiter == waited) return;
    const Guard guard;
    void* event = nullptr;
    guard.record(&event, waited, waited.device_index(), c10::EventFlag::PYTORCH_DEFAULT);
    guard.block(event, waiter);
    guard.destroyEvent(event, waited.device_index());
}

}  // namespace fakegpu

using namespace fakegpu;

int fakegpu_device_count() { return device_count(); }
int fakegpu_current_device() { return current_device(); }
void fakegpu_synchronize_all() { synchronize_all(); }
int fakegpu_in_forked_child() { return in_forked_child(); }
void fakegpu_set_delay(int microseconds) { world().delay_us = microseconds; }

void fakegpu_hold(int device, int64_t stream) {
    World& w = world();
    uint64_t number;
    {
        const std::lock_guard lock(w.gates_mutex);
        number = ++w.gates[{device, stream}].placed;
    }
    enqueue(stream_of(static_cast<c10::DeviceIndex>(device), stream), [&w, device, stream, number] {
        std::unique_lock lock(w.gates_mutex);
        Gate& gate = w.gates[{device, stream}];
        w.gates_changed.wait(lock, [&] { return gate.opened >= number; });
    });
}

void fakegpu_release() {
    World& w = world();
    const std::lock_guard lock(w.gates_mutex);
    for (auto& [key, gate] : w.gates) gate.opened = gate.placed;
    w.gates_changed.notify_all();
}
