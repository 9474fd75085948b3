// The fake's objects. Handles are never reused within a process, so that a stale one is known as such.
#pragma once

#include <cuda.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace numsan::ptx {
struct Kernel;
}

namespace fake_cuda {

using Work = std::function<void()>;

inline constexpr size_t kDeviceBytes = size_t(8) << 30;  // made up: the host's memory is the limit
inline constexpr std::align_val_t kAlignment{256};       // of all memory that the fake makes
inline void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

/// A driver entry's script and count.
struct Call {
    std::atomic<uint64_t> count{0};
    std::atomic<int> result{0}, skip{0}, times{0};
    std::atomic<bool> hidden{false}, stalled{false};

    CUresult enter();
};
Call& call(const std::string& name);

/// The first line of every entry: counts, and returns what the script says.
#define FAKE_ENTER(name)                                                 \
    do {                                                                 \
        static fake_cuda::Call& entry_ = fake_cuda::call(#name);         \
        if (const CUresult scripted_ = entry_.enter()) return scripted_; \
    } while (0)
#define FAKE_TRY(expression)                                     \
    do {                                                         \
        if (const CUresult tried_ = (expression)) return tried_; \
    } while (0)

/// "Everything that `stream` was given up to `ticket`."
struct Marker {
    CUstream stream;
    uint64_t ticket;
};

struct Task {
    std::vector<Marker> after;
    Work run;
};

struct Capture {
    cuuint64_t id;
    CUstreamCaptureMode mode;
    std::thread::id owner;
    CUstream origin;
    CUgraph graph;
    bool valid = true;
};

/// A library that CUDA_INJECTION64_PATH names is loaded and started, once.
void inject();
/// A call of the driver's, wherever it comes from.
void note_call();

/// The thread's current context, usable; else why not.
CUresult current(CUcontext& context);
/// The stream behind a handle, null and the special ones included.
CUresult resolve(CUstream handle, CUstream& stream);
/// Runs `work` on the stream in order, or records it in the stream's capture.
CUresult submit(CUstream handle, Work work);
/// What a call that is unsafe during capture has to ask first.
CUresult check_unsafe();
/// Runs a call that launches, or is for memory, and tells who watches such calls (launch_watch.h). `callback` is its
/// number in CUPTI.
CUresult watched(uint32_t callback, const char* name, const void* arguments, const char* kernel,
                 const std::function<CUresult()>& run);
void wait(const Marker& marker);
void drain(CUcontext context);
void free_memory(CUcontext context);
/// Device memory that somebody else makes and takes back: that it is there, and that it is no more.
void note_memory(CUcontext context, void* memory, size_t bytes);
/// False where there is no such memory.
bool forget_memory(void* memory);
/// Where each allocation of the context begins that a kernel may use, and its bytes.
std::vector<std::pair<const void*, size_t>> device_memory(CUcontext context);

struct Settings {
    std::atomic<int> devices{1}, version{13000}, threads{1};
    std::atomic<uint32_t> shuffle{0};
    std::atomic<bool> initialised{false}, skip_kernels{false};
};
extern Settings settings;

}  // namespace fake_cuda

struct CUctx_st {
    CUctx_st(int d, unsigned long long i, bool p) : device(d), id(i), primary(p) {}

    const int device;
    const unsigned long long id;
    const bool primary;
    int retained = 0;
    std::atomic<bool> destroyed{false};
    std::atomic<int> sticky{0};
    std::mutex order;  // of submissions in the context; guards what follows
    std::vector<CUstream> streams;
    CUstream legacy = nullptr;
    std::map<std::thread::id, CUstream> per_thread;
};

struct CUstream_st {
    CUstream_st(CUcontext c, bool b) : context(c), blocking(b) {}

    const CUcontext context;
    const bool blocking;
    bool destroyed = false;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<fake_cuda::Task> tasks;
    uint64_t submitted = 0, completed = 0;
    fake_cuda::Capture* capture = nullptr;  // guarded by the captures' mutex
};

struct CUevent_st {
    explicit CUevent_st(bool t) : timed(t) {}

    const bool timed;
    std::mutex mutex;
    // When the stream got there, in nanoseconds of the host; 0: not yet. The stream's too: it outlives the event.
    std::shared_ptr<std::atomic<int64_t>> time;
    fake_cuda::Marker recorded{nullptr, 0};
    fake_cuda::Capture* capture = nullptr;
};

struct CUuserObject_st {
    void* const pointer;
    const CUhostFn destroy;
    std::atomic<unsigned> references;
};

namespace fake_cuda {

/// References that a graph owns. What is instantiated of it, and each launch until it is over, has its own.
class Owned {
  public:
    Owned() = default;
    Owned(const Owned& other);
    Owned& operator=(const Owned&) = delete;
    ~Owned();
    void take(CUuserObject object, unsigned count) { all_.insert(all_.end(), count, object); }

  private:
    std::vector<CUuserObject> all_;
};

/// The last reference's release runs the destructor, on a thread where no call of the driver is permitted.
void release(CUuserObject object, unsigned count);
bool in_destructor();

}  // namespace fake_cuda

struct CUgraph_st {
    std::vector<fake_cuda::Work> nodes;  // in the order of capture, which every dependency agrees with
    fake_cuda::Owned owned;
};

struct CUgraphExec_st {
    explicit CUgraphExec_st(const CUgraph_st& graph)
        : nodes(std::make_shared<const std::vector<fake_cuda::Work>>(graph.nodes)), owned(graph.owned) {}

    const std::shared_ptr<const std::vector<fake_cuda::Work>> nodes;
    const fake_cuda::Owned owned;
    fake_cuda::Marker last{nullptr, 0};  // launches of one executable graph do not overlap
    std::mutex mutex;
};

struct CUmod_st {
    CUcontext context;
    bool host;  // its functions are the program's own
};

struct CUfunc_st {
    CUcontext context;
    std::string name;
    void (*host)(void*);  // null: one of the scan kernels
    const int* sizes;     ///< with `host`: of its parameters, then 0; null: it has one, a pointer
    bool large, look;     ///< which of numsan's kernels
    const numsan::ptx::Kernel* translated = nullptr;  ///< of a program that nvcc compiled
};
