// Stream capture: work is recorded with its parameters' bytes, and runs again at each launch of the graph. User objects
// go when the last graph, executable graph or launch does that owns them.
#include <algorithm>

#include "tests/fakes/cuda/internal.h"
#include "tests/fakes/cuda/launch_watch.h"

namespace fake_cuda {
namespace {

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
std::atomic<cuuint64_t> next_id{1};

std::vector<Capture*>& active() {
    static auto* captures = new std::vector<Capture*>;
    return *captures;
}

}  // namespace

std::mutex& captures_mutex() {
    static auto* mutex = new std::mutex;
    return *mutex;
}

/// With the captures' mutex held.
bool any_capture(CUcontext context) {
    return std::any_of(active().begin(), active().end(),
                       [&](const Capture* c) { return c->origin->context == context && c->origin->blocking; });
}

CUresult check_unsafe() {
    const std::lock_guard lock(captures_mutex());
    CUresult result = CUDA_SUCCESS;
    for (Capture* capture : active()) {
        const bool own = capture->owner == std::this_thread::get_id();
        const bool forbidden =
            thread_mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
            ((own && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED) ||
             (thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL));
        if (!forbidden) continue;
        capture->valid = false;
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

Marker submit_after(CUstream stream, const Marker& before, Work work);

static thread_local bool destructing = false;
bool in_destructor() { return destructing; }

// Waited for, unlike the driver's: a destructor that needs a lock of who releases is then a hang, not a rare one.
void release(CUuserObject object, unsigned count) {
    if (object->references.fetch_sub(count) != count) return;
    std::thread([object] {
        destructing = true;
        object->destroy(object->pointer);
    }).join();
    delete object;
}

Owned::Owned(const Owned& other) : all_(other.all_) {
    for (CUuserObject object : all_) ++object->references;
}
Owned::~Owned() {
    for (CUuserObject object : all_) release(object, 1);
}

static CUresult capture_info(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph) {
    CUstream stream;
    FAKE_TRY(resolve(handle, stream));
    const std::lock_guard lock(captures_mutex());
    if (stream == stream->context->legacy && any_capture(stream->context)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    const Capture* capture = stream->capture;
    *status = capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture->valid   ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                 : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    if (id != nullptr && capture != nullptr) *id = capture->id;
    if (graph != nullptr && capture != nullptr && capture->valid) *graph = capture->graph;
    return CUDA_SUCCESS;
}

}  // namespace fake_cuda

using namespace fake_cuda;

extern "C" {

CUresult CUDAAPI cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
    FAKE_ENTER(cuStreamBeginCapture);
    CUstream stream;
    FAKE_TRY(resolve(handle, stream));
    if (stream == stream->context->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    const std::lock_guard lock(captures_mutex());
    if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    stream->capture = new Capture{next_id++, mode, std::this_thread::get_id(), stream, new CUgraph_st};
    active().push_back(stream->capture);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamEndCapture(CUstream handle, CUgraph* graph) {
    FAKE_ENTER(cuStreamEndCapture);
    CUstream stream;
    FAKE_TRY(resolve(handle, stream));
    const std::lock_guard lock(captures_mutex());
    Capture* capture = stream->capture;
    if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->owner != std::this_thread::get_id())
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    const std::lock_guard order(stream->context->order);
    for (CUstream other : stream->context->streams) {
        if (other->capture == capture) other->capture = nullptr;
    }
    std::erase(active(), capture);
    const bool valid = capture->valid;
    *graph = valid ? capture->graph : nullptr;
    if (!valid) delete capture->graph;
    // The capture itself stays: events may name it.
    static auto* ended = new std::vector<Capture*>;
    ended->push_back(capture);
    return valid ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
    FAKE_ENTER(cuStreamIsCapturing);
    return capture_info(stream, status, nullptr, nullptr);
}

#undef cuStreamGetCaptureInfo
CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                           CUgraph* graph, const CUgraphNode** nodes, size_t* count) {
    FAKE_ENTER(cuStreamGetCaptureInfo);
    if (nodes != nullptr || count != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    return capture_info(stream, status, id, graph);
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    FAKE_ENTER(cuThreadExchangeStreamCaptureMode);
    std::swap(*mode, thread_mode);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
    FAKE_ENTER(cuGraphInstantiate);
    if (flags != 0) return CUDA_ERROR_NOT_SUPPORTED;
    *exec = new CUgraphExec_st(*graph);
    return CUDA_SUCCESS;
}

static CUresult launch_graph(CUgraphExec exec, CUstream handle) {
    FAKE_ENTER(cuGraphLaunch);
    CUstream stream;
    FAKE_TRY(resolve(handle, stream));
    {
        const std::lock_guard lock(captures_mutex());
        if (stream->capture != nullptr) return CUDA_ERROR_NOT_SUPPORTED;  // child graphs
    }
    const std::lock_guard lock(exec->mutex);
    const auto owned = std::make_shared<const Owned>(exec->owned);
    exec->last = submit_after(stream, exec->last, [nodes = exec->nodes, owned] {
        for (const Work& node : *nodes) node();
    });
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec exec, CUstream handle) {
    const GraphArguments arguments{exec, handle};
    return watched(514, "cuGraphLaunch", &arguments, nullptr, [&] { return launch_graph(exec, handle); });
}

CUresult CUDAAPI cuUserObjectCreate(CUuserObject* object, void* pointer, CUhostFn destroy, unsigned int references,
                                    unsigned int flags) {
    FAKE_ENTER(cuUserObjectCreate);
    if (flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC || references == 0) return CUDA_ERROR_INVALID_VALUE;
    *object = new CUuserObject_st{pointer, destroy, {references}};
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuUserObjectRelease(CUuserObject object, unsigned int count) {
    FAKE_ENTER(cuUserObjectRelease);
    release(object, count);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags) {
    FAKE_ENTER(cuGraphRetainUserObject);
    if (flags != 0 && flags != CU_GRAPH_USER_OBJECT_MOVE) return CUDA_ERROR_INVALID_VALUE;
    if (flags == 0) object->references += count;
    const std::lock_guard lock(captures_mutex());
    graph->owned.take(object, count);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec exec) {
    FAKE_ENTER(cuGraphExecDestroy);
    delete exec;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphDestroy(CUgraph graph) {
    FAKE_ENTER(cuGraphDestroy);
    delete graph;
    return CUDA_SUCCESS;
}

}  // extern "C"
