// What a scan costs the host's thread. The driver is a fake whose launches do nothing, so this is the scanner's own
// cost and the fake's locks; what a real driver's calls cost comes on top.
#include <benchmark/benchmark.h>
#include <cuda.h>

#include "cuda/cuda_scanner.h"
#include "tests/fakes/cuda/control.h"

namespace {

using namespace numsan;
using namespace numsan::gpu;

struct Subject {
    CUcontext context = nullptr;
    CUstream stream = nullptr;
    int64_t sizes[2] = {128, 64}, strides[2] = {64, 1};
    TensorView view{};
    ScanRequest request;

    Subject() {
        cuInit(0);
        cuDevicePrimaryCtxRetain(&context, 0);
        cuCtxSetCurrent(context);
        cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
        view.data = view.storage = this;
        view.numel = sizes[0] * sizes[1];
        view.sizes = sizes;
        view.strides = strides;
        view.ndim = 2;
        view.dtype = DType::Float32;
        request.where = {context, stream};
        request.outputs = &view;
        request.output_count = 1;
    }
};

Subject& subject() {
    static Subject s;
    return s;
}

void watch(const void*) {}
bool pin(const void*, const void** data, int64_t* bytes) {
    *data = nullptr;
    *bytes = 0;
    return true;
}
constexpr StorageApi kStorages{watch, watch, pin, watch};

void run(benchmark::State& state, bool deferred) {
    ScanRequest request = subject().request;
    static CudaScanner scanner;
    if (!scanner.prepare(request.where)) return state.SkipWithError(scanner.reason());
    fake_cuda::skip_kernels(true);
    if (deferred) request.storages = &kStorages;
    static uint64_t sequence = 0;
    for (auto _ : state) {
        request.sequence = ++sequence;
        scanner.scan(request);
    }
    scanner.flush_all();
    if (scanner.counters().incomplete()) state.SkipWithError("something was not scanned");
}

void immediate(benchmark::State& state) { run(state, false); }
void deferred(benchmark::State& state) { run(state, true); }
// The driver's calls in a scan, all but the launch: to be taken off.
void fake_calls(benchmark::State& state) {
    CUcontext context;
    CUstreamCaptureStatus status;
    for (auto _ : state) {
        cuCtxGetCurrent(&context);
        cuStreamIsCapturing(subject().stream, &status);
    }
}
BENCHMARK(immediate);
BENCHMARK(deferred);
BENCHMARK(fake_calls);

}  // namespace

BENCHMARK_MAIN();
