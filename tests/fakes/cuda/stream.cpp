// Streams as ordered queues, each with its own thread; events; the legacy default stream's order.
#include <chrono>

#include "tests/fakes/cuda/control.h"
#include "tests/fakes/cuda/internal.h"

namespace fake_cuda {
namespace {

struct Hold {
    std::mutex mutex;
    std::condition_variable changed;
    bool held = false;
};
Hold& the_hold() {
    static Hold* hold = new Hold;
    return *hold;
}

void work(CUstream stream) {
    for (;;) {
        Task task;
        {
            std::unique_lock lock(stream->mutex);
            stream->changed.wait(lock, [&] { return !stream->tasks.empty(); });
            task = std::move(stream->tasks.front());
            stream->tasks.pop_front();
        }
        for (const Marker& marker : task.after) wait(marker);
        {
            Hold& hold = the_hold();
            std::unique_lock lock(hold.mutex);
            hold.changed.wait(lock, [&] { return !hold.held; });
        }
        const bool last = task.run == nullptr;
        if (!last && !stream->context->destroyed && stream->context->sticky == 0) task.run();
        task = Task{};
        const std::lock_guard lock(stream->mutex);
        ++stream->completed;
        stream->changed.notify_all();
        if (last) return;
    }
}

int64_t nanoseconds() { return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

CUstream make_stream(CUcontext context, bool blocking) {
    auto* stream = new CUstream_st(context, blocking);
    std::thread(work, stream).detach();
    return stream;
}

}  // namespace

void hold(bool held) {
    Hold& h = the_hold();
    const std::lock_guard lock(h.mutex);
    h.held = held;
    h.changed.notify_all();
}

void wait(const Marker& marker) {
    if (marker.stream == nullptr) return;
    std::unique_lock lock(marker.stream->mutex);
    marker.stream->changed.wait(lock, [&] { return marker.stream->completed >= marker.ticket; });
}

static Marker now(CUstream stream) {
    const std::lock_guard lock(stream->mutex);
    return {stream, stream->submitted};
}

/// Every stream of the context is empty, and its thread ends.
void drain(CUcontext context) {
    std::vector<CUstream> all;
    {
        const std::lock_guard lock(context->order);
        all = context->streams;
        if (context->legacy != nullptr) all.push_back(context->legacy);
    }
    for (CUstream stream : all) {
        Marker end{};
        {
            const std::lock_guard lock(stream->mutex);
            if (!stream->destroyed) {
                stream->destroyed = true;
                stream->tasks.push_back(Task{});
                ++stream->submitted;
                stream->changed.notify_all();
            }
            end = {stream, stream->submitted};
        }
        wait(end);
    }
}

CUresult resolve(CUstream handle, CUstream& stream) {
    CUcontext context;
    const CUresult usable = current(context);
    if (handle != nullptr && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
        if (handle->context->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
        if (handle->context->sticky != 0) return static_cast<CUresult>(handle->context->sticky.load());
        stream = handle;
        const std::lock_guard lock(handle->mutex);
        return handle->destroyed ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
    }
    FAKE_TRY(usable);
    const std::lock_guard lock(context->order);
    if (handle == CU_STREAM_PER_THREAD) {
        CUstream& own = context->per_thread[std::this_thread::get_id()];
        if (own == nullptr) context->streams.push_back(own = make_stream(context, true));
        stream = own;
    } else {
        if (context->legacy == nullptr) context->legacy = make_stream(context, true);
        stream = context->legacy;
    }
    return CUDA_SUCCESS;
}

/// Behind everything that the stream, and by the legacy stream's rule others, were given.
static Marker enqueue(CUstream stream, Task task) {
    CUcontext context = stream->context;
    const std::lock_guard order(context->order);
    if (stream == context->legacy) {
        for (CUstream other : context->streams) {
            if (other->blocking) task.after.push_back(now(other));
        }
    } else if (stream->blocking && context->legacy != nullptr) {
        task.after.push_back(now(context->legacy));
    }
    const std::lock_guard lock(stream->mutex);
    stream->tasks.push_back(std::move(task));
    stream->changed.notify_all();
    return {stream, ++stream->submitted};
}

std::mutex& captures_mutex();
bool any_capture(CUcontext context);

CUresult submit(CUstream handle, Work work) {
    CUstream stream;
    FAKE_TRY(resolve(handle, stream));
    {
        const std::lock_guard lock(captures_mutex());
        if (stream->capture != nullptr) {
            if (!stream->capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
            stream->capture->graph->nodes.push_back(std::move(work));
            return CUDA_SUCCESS;
        }
        if (stream == stream->context->legacy && any_capture(stream->context))
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    enqueue(stream, Task{{}, std::move(work)});
    return CUDA_SUCCESS;
}

/// For a graph's launch: behind its last launch too.
Marker submit_after(CUstream stream, const Marker& before, Work work) {
    return enqueue(stream, Task{{before}, std::move(work)});
}

}  // namespace fake_cuda

using namespace fake_cuda;

extern "C" {

CUresult CUDAAPI cuStreamCreate(CUstream* out, unsigned int flags) {
    FAKE_ENTER(cuStreamCreate);
    CUcontext context;
    FAKE_TRY(current(context));
    const std::lock_guard lock(context->order);
    context->streams.push_back(*out = make_stream(context, (flags & CU_STREAM_NON_BLOCKING) == 0));
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* out, unsigned int flags, int) {
    return cuStreamCreate(out, flags);
}

// Unlike the driver's it waits for the work: a test's memory may go right after it.
CUresult CUDAAPI cuStreamDestroy(CUstream handle) {
    FAKE_ENTER(cuStreamDestroy);
    CUstream stream;
    FAKE_TRY(resolve(handle, stream));
    const Marker end = enqueue(stream, Task{});
    {
        const std::lock_guard lock(stream->mutex);
        stream->destroyed = true;
    }
    wait(end);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
    FAKE_ENTER(cuStreamSynchronize);
    CUstream stream;
    FAKE_TRY(resolve(handle, stream));
    {
        const std::lock_guard lock(captures_mutex());
        if (stream->capture != nullptr) {
            stream->capture->valid = false;
            return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    FAKE_TRY(check_unsafe());
    wait(enqueue(stream, Task{{}, [] {}}));
    return static_cast<CUresult>(stream->context->sticky.load());
}

CUresult CUDAAPI cuStreamQuery(CUstream handle) {
    FAKE_ENTER(cuStreamQuery);
    FAKE_TRY(check_unsafe());
    CUstream stream;
    FAKE_TRY(resolve(handle, stream));
    const std::lock_guard lock(stream->mutex);
    return stream->completed == stream->submitted ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext* context) {
    FAKE_ENTER(cuStreamGetCtx);
    CUstream stream;
    FAKE_TRY(resolve(handle, stream));
    *context = stream->context;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSynchronize() {
    FAKE_ENTER(cuCtxSynchronize);
    CUcontext context;
    FAKE_TRY(current(context));
    FAKE_TRY(check_unsafe());
    std::vector<CUstream> all;
    {
        const std::lock_guard lock(context->order);
        all = context->streams;
        if (context->legacy != nullptr) all.push_back(context->legacy);
    }
    for (CUstream stream : all) wait(now(stream));
    return static_cast<CUresult>(context->sticky.load());
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
    FAKE_ENTER(cuLaunchHostFunc);
    return submit(stream, [=] { function(data); });
}

CUresult CUDAAPI cuEventCreate(CUevent* event, unsigned int flags) {
    FAKE_ENTER(cuEventCreate);
    CUcontext context;
    FAKE_TRY(current(context));
    *event = new CUevent_st((flags & CU_EVENT_DISABLE_TIMING) == 0);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventDestroy(CUevent event) {
    FAKE_ENTER(cuEventDestroy);
    delete event;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream handle) {
    FAKE_ENTER(cuEventRecord);
    CUstream stream;
    FAKE_TRY(resolve(handle, stream));
    const std::lock_guard captures(captures_mutex());
    const std::lock_guard lock(event->mutex);
    event->capture = stream->capture;
    event->recorded = now(stream);
    if (!event->timed || stream->capture != nullptr) return CUDA_SUCCESS;
    event->time = std::make_shared<std::atomic<int64_t>>(0);
    event->recorded = enqueue(stream, Task{{}, [time = event->time] { *time = nanoseconds(); }});
    return CUDA_SUCCESS;
}

// The host's time: what the work of a fake device costs says nothing of a device.
#undef cuEventElapsedTime
static CUresult elapsed(float* milliseconds, CUevent begin, CUevent end) {
    FAKE_ENTER(cuEventElapsedTime);
    FAKE_TRY(check_unsafe());
    int64_t times[2];
    const CUevent events[] = {begin, end};
    for (int i = 0; i < 2; ++i) {
        const std::lock_guard lock(events[i]->mutex);
        if (events[i]->time == nullptr) return CUDA_ERROR_INVALID_HANDLE;
        times[i] = *events[i]->time;
        if (times[i] == 0) return CUDA_ERROR_NOT_READY;
    }
    *milliseconds = static_cast<float>(static_cast<double>(times[1] - times[0]) * 1e-6);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
    return elapsed(milliseconds, begin, end);
}

// The name that cuda.h of CUDA 13 gives it.
CUresult CUDAAPI cuEventElapsedTime_v2(float* milliseconds, CUevent begin, CUevent end) {
    return elapsed(milliseconds, begin, end);
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int) {
    FAKE_ENTER(cuStreamWaitEvent);
    CUstream stream;
    FAKE_TRY(resolve(handle, stream));
    Marker marker;
    {
        const std::lock_guard captures(captures_mutex());
        const std::lock_guard lock(event->mutex);
        if (event->capture != nullptr) {  // the stream joins the capture; its work is recorded in order
            if (stream->capture != nullptr && stream->capture != event->capture) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
            stream->capture = event->capture;
            return CUDA_SUCCESS;
        }
        if (stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
        marker = event->recorded;
    }
    if (marker.stream != nullptr) enqueue(stream, Task{{marker}, [] {}});
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventQuery(CUevent event) {
    FAKE_ENTER(cuEventQuery);
    FAKE_TRY(check_unsafe());
    const std::lock_guard lock(event->mutex);
    if (event->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
    if (event->recorded.stream == nullptr) return CUDA_SUCCESS;
    const std::lock_guard stream(event->recorded.stream->mutex);
    return event->recorded.stream->completed >= event->recorded.ticket ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult CUDAAPI cuEventSynchronize(CUevent event) {
    FAKE_ENTER(cuEventSynchronize);
    FAKE_TRY(check_unsafe());
    Marker marker;
    {
        const std::lock_guard lock(event->mutex);
        if (event->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
        marker = event->recorded;
    }
    wait(marker);
    return CUDA_SUCCESS;
}

}  // extern "C"
