// A batch becomes a launch, or is counted with the reason why it did not; and what becomes of the scanner then.
#include <pthread.h>

#include <cstdio>
#include <cstring>
#include <new>
#include <optional>

#include "cuda/cuda_scanner.h"
#include "cuda/lane.h"
#include "cuda/outcomes.h"

namespace numsan::gpu {
namespace {

std::atomic<uint64_t> forks{0};
std::atomic<uint64_t> scanners{0};

void watch_forks() {
    const auto in_child = [] { forks.fetch_add(1, std::memory_order_relaxed); };
    [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, in_child);
}

bool means_lost(int result) {
    return result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT ||
           result == CUDA_ERROR_INVALID_HANDLE;
}

bool means_capture(int result) {
    return result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

}  // namespace

CudaScanner::CudaScanner(const char* library, int64_t alone_bytes)
    : alone_bytes_(alone_bytes),
      id_(scanners.fetch_add(1) + 1),
      forks_(forks.load(std::memory_order_relaxed)),
      outcomes_(new Outcomes) {
    watch_forks();
    auto* driver = new Driver;
    driver_ = driver;
    if (load_driver(library, *driver, reason_, sizeof reason_)) return;
    reason_taken_ = true;
    has_reason_ = true;
    turn_off(SkipReason::EngineOff);
}

// The rings and the device's memory stay: kernels may still be on their way.
CudaScanner::~CudaScanner() {
    close();
    if (forked()) return;
    for (int i = 0; i < lane_count_; ++i) {
        delete lanes_[i].load()->open;
        delete lanes_[i].load();
    }
    for (int i = 0; i < context_count_; ++i) delete contexts_[i].load();
    while (Batch* batch = spares_) {
        spares_ = batch->next;
        delete batch;
    }
    delete driver_;
}

bool CudaScanner::forked() const noexcept { return forks.load(std::memory_order_relaxed) != forks_; }

SkipReason CudaScanner::off_reason() const noexcept {
    if (forked()) return SkipReason::Forked;
    const int reason = off_.load(std::memory_order_acquire);
    return reason < 0 ? SkipReason::EngineOff : static_cast<SkipReason>(reason);
}

void CudaScanner::turn_off(SkipReason why) noexcept {
    int on = -1;
    off_.compare_exchange_strong(on, static_cast<int>(why), std::memory_order_acq_rel);
}

void CudaScanner::close() noexcept {
    turn_off(SkipReason::Closed);
    flush_all();
}

void CudaScanner::skip(SkipReason why, uint64_t count) noexcept {
    skipped_[static_cast<int>(why)].fetch_add(count, std::memory_order_relaxed);
}

void CudaScanner::skip_item(const Lane& lane, uint64_t sequence, SkipReason why) noexcept {
    skip(why);
    if (!lane.is_captured()) outcomes_->give_up(sequence, lane.context.index, why);
}

DeviceScanner::Taken CudaScanner::skip_request(const ScanRequest& request, SkipReason why) noexcept {
    static constexpr const char* kReported[] = {
#define NUMSAN_SKIP_REASON(id, text, reported) reported,
#include "cuda/skip_reasons.def"
#undef NUMSAN_SKIP_REASON
    };
    if (const char* reported = kReported[static_cast<int>(why)]; reported[0] != '\0') keep_reason(reported);
    const bool taken = why != SkipReason::EngineOff && why != SkipReason::Closed && why != SkipReason::Forked &&
                       why != SkipReason::SetUpFailed;
    const Outcomes::Outcome empty{Outcomes::Kind::Empty, 0}, skipped = Outcomes::Outcome::skipped(why);
    for (int i = 0; i < request.output_count; ++i) {
        const bool nothing = request.outputs[i].numel == 0;
        if (!nothing) skip(why);
        if (taken) outcomes_->set(request.sequence + static_cast<uint64_t>(i), nothing ? empty : skipped);
    }
    return taken ? DeviceScanner::Taken::Now : DeviceScanner::Taken::No;
}

CUcontext CudaScanner::context_of(const StreamRef& where) noexcept {
    CUcontext context = where.context;
    if (context != nullptr) return context;
    if (where.device >= 0) return primary_context(where.device);
    return driver_->context_current(&context) == CUDA_SUCCESS ? context : nullptr;
}

/// Asked for once, until it is lost.
CUcontext CudaScanner::primary_context(int device) noexcept {
    if (device >= kMaxDevices) return nullptr;
    CUcontext context = primaries_[device].load(std::memory_order_acquire);
    if (context != nullptr) return context;
    CUdevice handle = 0;
    const char* call = "cuDeviceGet";
    CUresult result = driver_->device_get(&handle, device);
    if (result == CUDA_SUCCESS) {
        call = "cuDevicePrimaryCtxRetain";
        result = driver_->primary_retain(&context, handle);
    }
    if (result != CUDA_SUCCESS) {
        keep_reason(call, result);
        return nullptr;
    }
    driver_->primary_release(handle);  // the program holds it, or it goes now
    primaries_[device].store(context, std::memory_order_release);
    return context;
}

/// The first one is kept.
void CudaScanner::keep_reason(const char* reason) noexcept {
    if (reason_taken_.exchange(true)) return;
    std::snprintf(reason_, sizeof reason_, "%s", reason);
    has_reason_.store(true, std::memory_order_release);
}

void CudaScanner::keep_reason(const char* call, int result) noexcept {
    char name[96];
    name_error(*driver_, static_cast<CUresult>(result), name, sizeof name);
    char text[sizeof reason_];
    const int version = driver_->version;
    if (std::strcmp(call, "cuModuleLoadData") == 0 && version < CUDA_VERSION) {
        std::snprintf(text, sizeof text, "%s: %s: numsan's kernels are of CUDA %d.%d, the driver is of CUDA %d.%d",
                      call, name, CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10, version / 1000, version % 1000 / 10);
    } else {
        std::snprintf(text, sizeof text, "%s: %s", call, name);
    }
    keep_reason(text);
}

/// An invalid handle is that of a stream that is gone, or another context's, unless the context itself is gone. To be
/// asked with the context current, as far as it can be.
bool CudaScanner::is_alive(CUcontext context) const noexcept {
    unsigned long long id = 0;
    if (driver_->context_id(nullptr, &id) != CUDA_SUCCESS) return false;
    const ContextEntry* entry = known_context(context);
    return entry == nullptr || entry->status.load(std::memory_order_acquire) != ContextEntry::Ready ||
           entry->state.context_id == id;
}

/// What an error means: for the launch, the context, or all that follows.
SkipReason CudaScanner::driver_failed(CUcontext context, const char* call, int result) noexcept {
    if (means_capture(result)) return SkipReason::CaptureForbids;
    if (result == CUDA_ERROR_INVALID_HANDLE && is_alive(context)) return SkipReason::StreamInvalid;
    keep_reason(call, result);
    if (!means_lost(result)) {
        turn_off(SkipReason::EngineOff);
        return SkipReason::EngineOff;
    }
    for (std::atomic<CUcontext>& primary : primaries_) {
        CUcontext lost = context;
        primary.compare_exchange_strong(lost, nullptr);
    }
    int ready = ContextEntry::Ready;
    if (ContextEntry* entry = known_context(context)) entry->status.compare_exchange_strong(ready, ContextEntry::Lost);
    return SkipReason::ContextLost;
}

/// 0 in `capture` when the stream is not captured. False when it takes no launch.
bool CudaScanner::ask_capture(const StreamRef& where, uint64_t& capture, SkipReason& why) noexcept {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    const CUresult result = driver_->capture_info(where.stream, &status, &id, nullptr, nullptr, nullptr);
    if (result != CUDA_SUCCESS) {
        why = driver_failed(where.context, "cuStreamGetCaptureInfo", result);
        return false;
    }
    why = SkipReason::CaptureForbids;
    capture = status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? id : 0;
    return status != CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

bool CudaScanner::launch_table(Lane& lane, Batch& batch, int64_t bytes, Stream asked, SkipReason& why) noexcept {
    ContextEntry& context = lane.context;
    why = SkipReason::ContextLost;
    if (context.status.load(std::memory_order_acquire) != ContextEntry::Ready) return false;
    std::optional<ContextScope> scope;
    if (asked == Stream::Unknown) scope.emplace(*driver_, context.context);
    unsigned long long id = 0;
    const CUresult found =
        scope && scope->result() != CUDA_SUCCESS ? scope->result() : driver_->context_id(nullptr, &id);
    if (found != CUDA_SUCCESS || id != context.state.context_id) {
        why = driver_failed(context.context, "cuCtxGetId",
                            found != CUDA_SUCCESS ? int(found) : int(CUDA_ERROR_CONTEXT_IS_DESTROYED));
        return false;
    }
    const CUstream stream = lane.stream();
    uint64_t capture = lane.capture();
    if (asked == Stream::Unknown && !ask_capture({context.context, stream}, capture, why)) return false;
    why = SkipReason::CaptureChanged;
    if (capture != lane.capture()) return false;
    batch.filler.close(alone_bytes_);
    const DeviceState& state = context.state;
    ScanHeader& header = batch.filler.header();
    // Behind a gate of a graph a look would come after what ends the replay: one block does it all.
    if (lane.is_captured() && header.gate != nullptr) header.looks = nullptr;
    // Another thread's pair has it, or a look was refused and it is not at rest: one block does it all.
    if (header.looks != nullptr && lane.look_taken.exchange(true, std::memory_order_acquire)) header.looks = nullptr;
    if (header.looks != nullptr) header.scratch = state.memory->lanes[lane.index].looked.items;
    header.scan_blocks = grid_blocks(header.chunks, state.multiprocessors);
    if (lane.is_captured()) put_into_graph(lane, batch);
    // Behind a gate nothing may be read, and of other batches the bytes do not say how long they take.
    const bool timed =
        capture == 0 && header.gate == nullptr && !batch.is_special && context.clock.begin(header, bytes);
    // The header is complete: the small table is a copy.
    const bool small = batch.filler.fits_small();
    const void* table = small ? static_cast<const void*>(&batch.filler.small()) : &batch.filler.large();
    void* parameters[] = {const_cast<void*>(table)};
    const auto launch = [&](CUfunction kernel, uint32_t blocks) {
        const CUresult result =
            driver_->launch(kernel, blocks, 1, 1, kBlockThreads, 1, 1, 0, stream, parameters, nullptr);
        if (result == CUDA_SUCCESS) launches_.fetch_add(1, std::memory_order_relaxed);
        if (result != CUDA_SUCCESS) why = driver_failed(context.context, "cuLaunchKernel", result);
        return result == CUDA_SUCCESS;
    };
    const bool scanned = launch(small ? state.scan_small : state.scan_large, header.scan_blocks);
    if (timed && !scanned) context.clock.give_up(header);
    if (lane.is_captured() && scanned) {
        lane.captured_launches.store(header.launch_number + 1, std::memory_order_relaxed);
        std::atomic_ref(state.replays_host[lane.index].launches).store(header.launch_number + 1);
    }
    if (header.looks == nullptr) return scanned;
    const uint32_t blocks = grid_blocks(header.look_chunks, state.multiprocessors, kLookBlocksPerSm);
    const bool looked = scanned && launch(small ? state.look_small : state.look_large, blocks);
    if (looked || !scanned) lane.look_taken.store(false, std::memory_order_release);
    return looked;
}

void CudaScanner::launch(Lane& lane, Batch& batch, Stream stream) noexcept {
    if (batch.count == 0) return;
    uint64_t alive = 0;
    int64_t bytes = 0;
    for (int i = 0; i < batch.count; ++i) {
        if (batch.items[i].dead) continue;
        ++alive;
        bytes += batch.items[i].bytes;
    }
    SkipReason why = off_reason();
    if (alive != 0 && (!usable() || !launch_table(lane, batch, bytes, stream, why))) {
        for (int i = 0; i < batch.count; ++i) {
            if (!batch.items[i].dead) skip_item(lane, batch.items[i].sequence, why);
        }
    } else if (alive != 0) {
        (lane.is_captured() ? captured_ : scanned_).fetch_add(alive, std::memory_order_relaxed);
        bytes_.fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed);
        if (lane.is_captured()) remember_captured(lane, batch);
    }
    batch.count = 0;
}

/// Before the launch; it counts once it was made.
void CudaScanner::put_into_graph(const Lane& lane, Batch& batch) noexcept {
    const DeviceState& state = lane.context.state;
    ScanHeader& header = batch.filler.header();
    header.window = &state.memory->lanes[lane.index].window;
    header.replays = state.replays_device + lane.index;
    header.capture = lane.capture();
    header.launch_number = lane.captured_launches.load(std::memory_order_relaxed);
    header.replay_share = batch.replays.share;
    header.replay_warmup = batch.replays.warmup;
    if (header.gate != nullptr) return;
    header.flags |= (batch.takes_turns ? uint32_t(kTakesTurns) : 0) | (batch.governs ? uint32_t(kGoverns) : 0);
}

/// So that a replay's hit finds its lane, and its number in full.
void CudaScanner::remember_captured(Lane& lane, const Batch& batch) noexcept {
    const std::lock_guard lock(lane.context.captured_mutex);
    try {
        for (int i = 0; i < batch.count; ++i) {
            const uint64_t sequence = batch.items[i].sequence;
            lane.captured_numbers.push_back(static_cast<uint32_t>(sequence));
            lane.context.captured[static_cast<uint32_t>(sequence)] = {&lane, sequence};
        }
    } catch (const std::bad_alloc&) {  // the hit is handed over before its replay is over
    }
}

}  // namespace numsan::gpu
