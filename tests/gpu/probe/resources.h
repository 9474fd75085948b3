// Streams, memory, events and graphs of the device, given back at the end of a scope, also when a phase fails in it.
#pragma once

#include <cstdint>
#include <utility>

#include "tests/gpu/probe/call.h"

namespace numsan::gpu::probe {

class Stream {
  public:
    Stream() { check("cuStreamCreate", gpu().stream_create(&stream_, CU_STREAM_NON_BLOCKING)); }
    ~Stream() { gpu().stream_destroy(stream_); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    operator CUstream() const { return stream_; }
    void synchronize() const { check("cuStreamSynchronize", gpu().stream_synchronize(stream_)); }

  private:
    CUstream stream_ = nullptr;
};

class Event {
  public:
    Event() { check("cuEventCreate", gpu().event_create(&event_, CU_EVENT_DEFAULT)); }
    ~Event() { gpu().event_destroy(event_); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    void record(CUstream stream) { check("cuEventRecord", gpu().event_record(event_, stream)); }
    void synchronize() const { check("cuEventSynchronize", gpu().event_synchronize(event_)); }
    /// Microseconds of the device from `begin` to this.
    double since(const Event& begin) const {
        float milliseconds = 0;
        check("cuEventElapsedTime", gpu().event_elapsed(&milliseconds, begin.event_, event_));
        return double(milliseconds) * 1e3;
    }

  private:
    CUevent event_ = nullptr;
};

/// Device memory. What goes there and is filled is ordered by a stream.
class Buffer {
  public:
    explicit Buffer(size_t bytes) : bytes_(bytes) { check("cuMemAlloc", gpu().allocate(&address_, bytes)); }
    ~Buffer() {
        gpu().synchronize();  // where a phase failed, what it launched may not be over
        gpu().free(address_);
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    size_t bytes() const { return bytes_; }
    CUdeviceptr at(size_t offset) const { return address_ + offset; }
    const void* data(size_t offset = 0) const { return reinterpret_cast<const void*>(address_ + offset); }
    void fill(unsigned char byte, CUstream stream) const { fill(byte, 0, bytes_, stream); }
    void fill(unsigned char byte, size_t offset, size_t count, CUstream stream) const {
        check("cuMemsetD8Async", gpu().fill(address_ + offset, byte, count, stream));
    }
    /// `bytes` stay where they are until the stream has been waited for.
    void put(const void* bytes, size_t count, CUstream stream) const {
        check("cuMemcpyHtoDAsync", gpu().to_device(address_, bytes, count, stream));
    }

  private:
    CUdeviceptr address_ = 0;
    size_t bytes_;
};

/// What a stream was given between begin and end, to be launched.
class Graph {
  public:
    /// `record()` gives the stream its work. A capture that fails is ended, so that the stream can be used on.
    template <class Record>
    Graph(CUstream stream, Record record) {
        check("cuStreamBeginCapture", gpu().begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        try {
            record();
        } catch (...) {
            gpu().end_capture(stream, &graph_);
            destroy();
            throw;
        }
        check("cuStreamEndCapture", gpu().end_capture(stream, &graph_));
        const CUresult result = gpu().instantiate(&exec_, graph_, 0);
        if (result != CUDA_SUCCESS) destroy();
        check("cuGraphInstantiateWithFlags", result);
    }
    ~Graph() { destroy(); }
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    void launch(CUstream stream) const { check("cuGraphLaunch", gpu().launch_graph(exec_, stream)); }

  private:
    void destroy() {
        if (exec_ != nullptr) gpu().destroy_exec(exec_);
        if (graph_ != nullptr) gpu().destroy_graph(graph_);
    }
    CUgraph graph_ = nullptr;
    CUgraphExec exec_ = nullptr;
};

}  // namespace numsan::gpu::probe
