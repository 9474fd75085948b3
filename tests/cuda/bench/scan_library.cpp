// The scanner behind a C interface, for tests/bench/cuda_scan.py: torch has the memory, the streams and the clocks.
#include <chrono>
#include <cstdio>
#include <string_view>
#include <vector>

#include "cuda/cuda_scanner.h"

namespace {

using namespace numsan;
using namespace numsan::gpu;

// Everything lies in memory that the caller keeps.
constexpr StorageApi kKept{[](const void*) {}, [](const void*) {},
                           [](const void* storage, const void** data, int64_t* bytes) {
                               *data = storage;
                               *bytes = 1;
                               return true;
                           },
                           [](const void*) {}};

struct Bench {
    CudaScanner scanner;
    uint64_t sequence = 0;
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

/// Null: `reason` (of `size` bytes) says why there is no scanner of this device. One thread uses a bench.
EXPORT void* numsan_bench_open(int device, void* stream, char* reason, int size) {
    auto* bench = new Bench;
    if (bench->scanner.prepare({nullptr, static_cast<CUstream_st*>(stream), device})) return bench;
    std::snprintf(reason, static_cast<size_t>(size), "%s", bench->scanner.reason());
    delete bench;
    return nullptr;
}

EXPORT void numsan_bench_close(void* bench) { delete static_cast<Bench*>(bench); }

/// Element types by their number in host/base/dtype.h; -1: there is none of this name.
EXPORT int numsan_bench_dtype(const char* name) {
    for (int i = 0; i < kDTypeCount; ++i) {
        if (std::string_view(info(static_cast<DType>(i)).name) == name) return i;
    }
    return -1;
}

/// Hands `repeats` ops over, each of which wrote `count` tensors of `rows` times `elements` of `dtype`, `stride` apart,
/// op i those from data[i * count % total] on. Scanned at once, or, with `deferred`, when the batch is full. Returns
/// the host's nanoseconds an op.
EXPORT double numsan_bench_scan(void* handle, int device, void* stream, const void* const* data, int total, int count,
                                int64_t rows, int64_t elements, int64_t stride, int dtype, int64_t repeats,
                                int deferred) {
    auto& bench = *static_cast<Bench*>(handle);
    const auto type = static_cast<DType>(dtype);
    const int64_t sizes[] = {rows, elements}, strides[] = {stride, 1};
    std::vector<TensorView> views(static_cast<size_t>(total));
    for (int i = 0; i < total; ++i) {
        TensorView& view = views[static_cast<size_t>(i)];
        view.data = view.storage = view.storage_data = data[i];
        view.storage_bytes = rows * stride * static_cast<int64_t>(info(type).element_bytes());
        view.numel = rows * elements;
        view.sizes = sizes;
        view.strides = strides;
        view.ndim = 2;
        view.dtype = type;
        view.device = Device::Cuda;
        view.flags = kScannable;
    }
    ScanRequest request;
    request.where = {nullptr, static_cast<CUstream_st*>(stream), device};
    request.output_count = count;
    if (deferred != 0) request.storages = &kKept;
    const auto started = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < repeats; ++i) {
        request.outputs = &views[static_cast<size_t>(i * count % total)];
        request.sequence = ++bench.sequence;
        bench.sequence += static_cast<uint64_t>(count - 1);
        bench.scanner.scan(request);
    }
    bench.scanner.flush(request.where);
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - started;
    return taken.count() / static_cast<double>(repeats);
}

/// What was scanned since the bench was opened: outputs, bytes, launches, and outputs that were not.
EXPORT void numsan_bench_counters(void* handle, uint64_t counters[4]) {
    const ScanCounters all = static_cast<Bench*>(handle)->scanner.counters();
    counters[0] = all.scanned;
    counters[1] = all.bytes;
    counters[2] = all.launches;
    counters[3] = all.all_skipped();
}

/// "reason: outputs; reason: outputs" of those that were not scanned.
EXPORT void numsan_bench_skipped(void* handle, char* text, int size) {
    const ScanCounters all = static_cast<Bench*>(handle)->scanner.counters();
    int at = 0;
    text[0] = '\0';
    for (int i = 0; i < kSkipReasonCount && at < size; ++i) {
        if (all.skipped[i] == 0) continue;
        at += std::snprintf(text + at, static_cast<size_t>(size - at), "%s%s: %llu", at == 0 ? "" : "; ",
                            kSkipReasons[i], static_cast<unsigned long long>(all.skipped[i]));
    }
}

/// Bad outputs that were told since; the device must have finished.
EXPORT int numsan_bench_hits(void* handle) {
    return static_cast<Bench*>(handle)->scanner.poll([](const Hit&) {});
}
