// Scans tensors on the GPU, in the order of their streams, and reports the bad ones; only read() waits for the GPU.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/kernel/hit_ring.h"
#include "cuda/kernel/scan_policy.h"
#include "cuda/scan_cost.h"
#include "cuda/skip_reason.h"
#include "host/base/adapter_abi.h"
#include "host/base/device_scanner.h"
#include "host/base/health.h"
#include "host/base/tensor_view.h"

struct CUctx_st;
struct CUstream_st;

namespace numsan::gpu {

class GraphEnd;
class Lane;
struct Held;
struct Holding;
class Outcomes;
struct Batch;
struct ContextEntry;
struct Driver;

/// Driver handles, never dereferenced. A null context is the primary one of `device`, or without that the thread's
/// current one; a null stream the default stream.
struct StreamRef {
    CUctx_st* context = nullptr;
    CUstream_st* stream = nullptr;
    int device = -1;
};

struct ScanRequest {
    StreamRef where;
    const TensorView* outputs = nullptr;
    int output_count = 0;
    const TensorView* inputs = nullptr;  ///< the first few are looked at if an output is bad
    int input_count = 0;
    /// Null: scan at once. Else small outputs may be deferred: what they and their inputs lie in is pinned meanwhile.
    /// The same for all requests.
    const StorageApi* storages = nullptr;
    uint64_t sequence = 0;     ///< as in DeviceScan
    bool raises_gate = false;  ///< a bad output opens the stream's gate; never deferred
    bool exact = false;        ///< the exact pass looks at the outputs even if they are clean
    ReplayBudget replays;      ///< as in DeviceScan
    bool takes_turns = false;
};

/// Outputs, unless a line says otherwise. Every output that was handed over and has an element is in one of `scanned`,
/// `captured`, `pending` and `skipped`. What replays scan is not counted: the host does not see them.
struct ScanCounters {
    uint64_t scanned = 0;   ///< launched, those behind a gate too
    uint64_t captured = 0;  ///< launched into a graph
    uint64_t deferred = 0;  ///< were pending at some time
    uint64_t pending = 0;
    uint64_t bytes = 0;  ///< of `scanned` and `captured`
    uint64_t launches = 0;
    uint64_t hits = 0;     ///< handed over by poll()
    uint64_t dropped = 0;  ///< slots of hits that found a ring full
    uint64_t skipped[kSkipReasonCount] = {};

    uint64_t all_skipped() const {
        uint64_t all = 0;
        for (const uint64_t n : skipped) all += n;
        return all;
    }
    /// Something was not looked at, or not reported.
    bool incomplete() const { return dropped != 0 || all_skipped() != 0; }
};

/// A bad output. Valid during the callback.
struct Hit {
    CUctx_st* context;
    uint64_t sequence;  ///< the output's number; of a replay: the one it had when it was captured
    uint64_t replay;  ///< 0: not from a graph; else 1 for the first launch of it, and of those that had its lane before
    uint32_t lane;    ///< of a graph: the same for replays that are counted together, another one in each context
    Health health;
    const HitSlot* slots;  ///< the output, then its inputs
    int count;
};

/// [MT] No member throws. Nothing is allocated on the way of a scan but a stream's first batch. The driver is never
/// called with a lock held, nor by the destructor, close(), poll(), counters(), device_bytes() or devices().
///
/// Outputs are walked from their end, which L2 still has. A batch is launched when an output is not to be deferred or
/// its thread goes on with another stream, and at the thresholds of scan_policy.h. What a deferred scan needs is held
/// strongly: a weak hold would have to be made a strong one on the way to the launch, and that may wait for the
/// interpreter's lock, which a thread may have that waits for the launch in note_write().
///
/// The caller calls flush() before the stream is captured, before a capture ends and before a wait for the stream, and
/// note_write() before a storage is written in place. After a fork the child's scanner is off; it may make another.
class CudaScanner {
  public:
    /// `alone_bytes`: as BatchFiller::close() takes it.
    explicit CudaScanner(const char* library = "libcuda.so.1", int64_t alone_bytes = kAloneBytes);
    ~CudaScanner();
    CudaScanner(const CudaScanner&) = delete;
    CudaScanner& operator=(const CudaScanner&) = delete;

    /// First use of a context, at a time of the caller's choice. True when scans of it will be taken.
    bool prepare(const StreamRef& where) noexcept;

    /// Now: outcome() will report every output that is not behind a gate. No: none will be looked at in this context.
    DeviceScanner::Taken scan(const ScanRequest& request) noexcept;
    /// Several for one stream, at least one; never deferred.
    DeviceScanner::Taken scan(const ScanRequest* requests, int count) noexcept;

    /// Requests for one stream, in as few launches as they need. Nothing is looked at while the stream's gate is
    /// closed, which it is afterwards: outcome() reports an output only if the gate was open. Never deferred.
    /// Precondition: one output at least has an element.
    DeviceScanner::Taken scan_behind_gate(const ScanRequest* requests, int count) noexcept;

    /// As DeviceScanner's.
    uint64_t capture_of(const StreamRef& where) noexcept;

    /// Launches what is pending on the stream. Not inside a driver callback.
    void flush(const StreamRef& where) noexcept;
    void flush_all() noexcept;

    /// Launches what is pending of `storage` (TensorView::storage). On return every scan of it is in its stream.
    void note_write(const void* storage) noexcept;

    /// Copies bytes of the device's memory to the host and waits for the stream. False: the stream is being captured,
    /// or the driver does not copy them. Not inside a driver callback.
    bool read(const StreamRef& where, const void* from, int64_t bytes, void* to) noexcept;

    /// The reader's side: hands over the hits that have arrived and returns how many. Those of one stream come in its
    /// order as far as they have arrived; tensors of one launch by sequence. One thread at a time, others return 0.
    int poll(const std::function<void(const Hit&)>& callback);
    /// The same for hits of replays of graphs, once the replay is over; of one replay by sequence.
    int poll_replays(const std::function<void(const Hit&)>& callback);

    /// The number of a captured output whose graph is gone: no later poll_replays() reports it. False: none for now.
    bool next_ended(uint64_t& sequence) noexcept;

    /// What became of the output with this number. One thread at a time.
    struct Outcome {
        DeviceScanner::Answer answer;
        Range range;
        bool has_hit;    ///< poll() has handed the hit over, or will; it may stand behind one in the making
        bool hit_stuck;  ///< with has_hit: the device is lost, a hit that is not in the ring now never will be
        SkipReason why;
    };
    Outcome outcome(uint64_t sequence) const noexcept;
    /// outcome() has reported it, or will not be asked.
    void forget(uint64_t sequence) noexcept;

    /// The earliest bad output that the device has reported so far, even if its hit was dropped. Replays are not in it.
    struct Offender {
        CUctx_st* context;
        uint64_t sequence;
    };
    std::optional<Offender> first_offender() const noexcept;

    /// No more scans; what is pending is dropped, and what it holds stays held. For the end of the program, in any
    /// order with that of CUDA.
    void close() noexcept;

    /// From here on what deferred scans hold stays held. [MT]
    void keep_held() noexcept { keeps_held_.store(true, std::memory_order_relaxed); }

    bool is_off() const noexcept { return off_.load(std::memory_order_relaxed) >= 0; }
    /// The first thing that went wrong, in one line; empty when nothing did. Owned by the scanner.
    const char* reason() const noexcept { return has_reason_.load(std::memory_order_acquire) ? reason_ : ""; }
    ScanCounters counters() const noexcept;
    int64_t device_bytes() const noexcept;
    std::vector<ScannedDevice> devices() const;

    /// What scans cost on a device, as far as poll() has learned it. -1: the one that was timed last.
    const ScanCost& cost(int device) const noexcept {
        const int known = device >= 0 && device < kMaxDevices ? device : last_timed_.load(std::memory_order_relaxed);
        return costs_[known];
    }

  private:
    static constexpr int kMaxContexts = 64;
    static constexpr int kMaxLanes = 2048;
    static constexpr int kMaxDevices = 64;

    // contexts and lanes: lanes.cpp
    ContextEntry* context_entry(CUctx_st* context, bool captured, SkipReason& why) noexcept;
    ContextEntry* known_context(CUctx_st* context) const noexcept;
    Lane* find_lane(const StreamRef& where, uint64_t capture, SkipReason& why) noexcept;
    Lane* known_lane(const ContextEntry& context, CUstream_st* stream, uint64_t capture) const noexcept;
    Lane* new_lane(ContextEntry& context, CUstream_st* stream, bool captured) noexcept;
    Lane* ended_lane(const ContextEntry& context, CUstream_st* stream) noexcept;
    void forget_captured(Lane& lane) noexcept;
    GraphEnd* watch_graph(CUstream_st* stream) const noexcept;
    Batch* spare() noexcept;
    void unpin(Batch* batch) noexcept;

    // batches
    void begin(const Lane& lane, Batch& batch, bool gated) noexcept;
    bool add(const Lane& lane, Batch& batch, const ScanRequest& request, int index) noexcept;
    /// Whether the caller has just asked whether the lane's stream is captured, its context is current, and none of the
    /// program's code has run since.
    enum class Stream : uint8_t { Asked, Unknown };
    void add_now(Lane& lane, Batch& batch, const ScanRequest& request, bool gated, Stream stream) noexcept;
    template <class Hand>
    DeviceScanner::Taken hand_to_lane(const ScanRequest* requests, int count, Hand hand) noexcept;
    void scan_now(Lane& lane, const ScanRequest* requests, int count, Stream stream) noexcept;
    void scan_gated(Lane& lane, const ScanRequest* requests, int count, Stream stream) noexcept;
    enum class Deferral { Pending, Due, NotTaken, Full };
    Deferral defer(Lane& lane, const ScanRequest& request, Holding& holding) noexcept;
    bool scan_later(Lane& lane, const ScanRequest& request) noexcept;
    void look_again(Lane& lane, Batch& batch) noexcept;
    void let_go(Batch& batch) noexcept;
    Batch* take(Lane& lane) noexcept;
    void land(Lane& lane, Batch* batch) noexcept;
    void flush_lane(Lane& lane) noexcept;
    void launch(Lane& lane, Batch& batch, Stream stream) noexcept;
    bool launch_table(Lane& lane, Batch& batch, int64_t bytes, Stream stream, SkipReason& why) noexcept;
    static void put_into_graph(const Lane& lane, Batch& batch) noexcept;
    void remember_captured(Lane& lane, const Batch& batch) noexcept;
    void skip(SkipReason why, uint64_t count = 1) noexcept;
    void skip_item(const Lane& lane, uint64_t sequence, SkipReason why) noexcept;
    DeviceScanner::Taken skip_request(const ScanRequest& request, SkipReason why) noexcept;

    // the driver's bad days
    bool forked() const noexcept;
    bool usable() const noexcept { return off_.load(std::memory_order_acquire) < 0 && !forked(); }
    SkipReason off_reason() const noexcept;
    CUctx_st* context_of(const StreamRef& where) noexcept;
    CUctx_st* primary_context(int device) noexcept;
    bool ask_capture(const StreamRef& where, uint64_t& capture, SkipReason& why) noexcept;
    template <class Ask>
    bool ask_stream(const StreamRef& where, Ask ask) noexcept;
    bool is_alive(CUctx_st* context) const noexcept;
    SkipReason driver_failed(CUctx_st* context, const char* call, int result) noexcept;
    void keep_reason(const char* call, int result) noexcept;
    void keep_reason(const char* reason) noexcept;
    void turn_off(SkipReason why) noexcept;

    uint64_t widen(uint32_t sequence) const noexcept;
    template <class Drain>
    int poll_contexts(Drain drain);
    int drain(ContextEntry& context, const std::function<void(const Hit&)>& callback);
    bool note_replays(const ContextEntry& context) noexcept;
    int drain_replays(ContextEntry& context, const std::function<void(const Hit&)>& callback);

    const Driver* driver_ = nullptr;
    const int64_t alone_bytes_;
    const uint64_t id_;
    const uint64_t forks_;
    std::atomic<int> off_{-1};
    std::atomic<bool> keeps_held_{false};
    std::atomic<bool> reason_taken_{false}, has_reason_{false};
    char reason_[256] = "";

    std::mutex table_mutex_;  // additions to the two tables
    std::atomic<ContextEntry*> contexts_[kMaxContexts] = {};
    std::atomic<int> context_count_{0};
    std::atomic<Lane*> lanes_[kMaxLanes] = {};
    std::atomic<int> lane_count_{0};
    std::mutex spares_mutex_;
    Batch* spares_ = nullptr;

    std::atomic<CUctx_st*> primaries_[kMaxDevices] = {};
    ScanCost costs_[kMaxDevices];
    std::atomic<int> last_timed_{0};

    std::unique_ptr<Outcomes> outcomes_;
    std::mutex poll_mutex_;
    std::atomic<uint64_t> last_sequence_{0};
    std::atomic<uint32_t> holding_{0};  ///< batches that hold storages: pending, or on their way to the launch
    std::atomic<uint64_t> scanned_{0}, captured_{0}, deferred_{0}, pending_{0}, bytes_{0}, launches_{0}, hits_{0};
    std::atomic<uint64_t> skipped_[kSkipReasonCount] = {};
};

}  // namespace numsan::gpu
