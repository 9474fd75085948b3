// What the driver's calls of a scan cost the host's thread, and what a whole scan does.
#include <functional>
#include <vector>

#include "tests/gpu/probe/table.h"

namespace numsan::gpu::probe {
namespace {

constexpr int kTurns = 101;

// Everything lies in memory that the caller keeps.
constexpr StorageApi kKept{[](const void*) {}, [](const void*) {},
                           [](const void* storage, const void** data, int64_t* bytes) {
                               *data = storage;
                               *bytes = 1;
                               return true;
                           },
                           [](const void*) {}};

/// Nanoseconds of the host a call, of `batch` calls in a row; the stream is empty before them.
Json host_cost(Phase& phase, const Stream& stream, int batch, const std::function<void()>& call) {
    std::vector<double> values;
    for (int turn = -3; turn < kTurns && !(turn > 3 && phase.is_over()); ++turn) {
        stream.synchronize();
        const Clock::time_point began = Clock::now();
        for (int i = 0; i < batch; ++i) call();
        if (turn >= 0) values.push_back(nanoseconds_since(began) / batch);
    }
    stream.synchronize();
    return spread(values);
}

void driver_calls(Phase& phase, const Stream& stream) {
    Subject& subject = phase.subject;
    const Driver& driver = subject.driver;
    const Buffer buffer(4096);
    buffer.fill(0, stream);
    const Table small = table_of(subject, buffer.data(), buffer.bytes(), DType::Float32);
    Table large(subject);
    add_outputs(large.filler(), {Shaped(buffer.data(), DType::Float32, 1024).view});
    large.close(Size::Large);
    Json& costs = phase.data["driver_calls"];
    constexpr int kBatch = 100;
    costs["the clock alone"] = host_cost(phase, stream, kBatch, [] { (void)Clock::now(); });
    costs["cuCtxGetCurrent"] = host_cost(phase, stream, kBatch, [&] {
        CUcontext context;
        check("cuCtxGetCurrent", driver.context_current(&context));
    });
    costs["cuCtxPushCurrent and cuCtxPopCurrent"] = host_cost(phase, stream, kBatch, [&] {
        CUcontext context;
        check("cuCtxPushCurrent", driver.context_push(gpu().context));
        check("cuCtxPopCurrent", driver.context_pop(&context));
    });
    costs["cuCtxGetId"] = host_cost(phase, stream, kBatch, [&] {
        unsigned long long id;
        check("cuCtxGetId", driver.context_id(nullptr, &id));
    });
    costs["cuStreamGetCaptureInfo"] = host_cost(phase, stream, kBatch, [&] {
        CUstreamCaptureStatus status;
        cuuint64_t id;
        check("cuStreamGetCaptureInfo", driver.capture_info(stream, &status, &id, nullptr, nullptr, nullptr));
    });
    costs["cuThreadExchangeStreamCaptureMode"] = host_cost(phase, stream, kBatch, [&] {
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        check("cuThreadExchangeStreamCaptureMode", driver.exchange_capture_mode(&mode));
        check("cuThreadExchangeStreamCaptureMode", driver.exchange_capture_mode(&mode));
    });
    costs["cuLaunchKernel, small table"] = host_cost(phase, stream, kTrain, [&] { small.launch(stream); });
    costs["cuLaunchKernel, large table"] = host_cost(phase, stream, kTrain / 4, [&] { large.launch(stream); });
    phase.note();
}

void scans(Phase& phase, const Stream& stream) {
    struct Case {
        const char* name;
        size_t bytes;
        int outputs;
        bool deferred, gated;
    };
    constexpr size_t kSmall = 4096;
    const size_t large = phase.subject.fitting(size_t(64) << 20, 2);
    const Case cases[] = {{"small", kSmall, 1, false, false},
                          {"large", large, 1, false, false},
                          {"small, 8 outputs", kSmall, 8, false, false},
                          {"small, deferred", kSmall, 1, true, false},
                          {"small, behind a gate", kSmall, 1, false, true}};
    CudaScanner& scanner = phase.subject.scanner();
    const Buffer buffer(large);
    buffer.fill(0, stream);
    Json& costs = phase.data["scans"];
    for (const Case& one : cases) {
        if (phase.is_over()) return;
        const Shaped shaped(buffer.data(), DType::Float32, int64_t(one.bytes / 4));
        std::vector<TensorView> views(size_t(one.outputs), shaped.view);
        for (TensorView& view : views) {
            view.storage = view.storage_data = view.data;
            view.storage_bytes = int64_t(one.bytes);
        }
        ScanRequest request;
        request.where = phase.subject.on(stream);
        request.outputs = views.data();
        request.output_count = one.outputs;
        if (one.deferred) request.storages = &kKept;
        Json cost = host_cost(phase, stream, kTrain, [&] {
            request.sequence = phase.subject.sequence(one.outputs);
            one.gated ? scanner.scan_behind_gate(&request, 1) : scanner.scan(request);
        });
        scanner.flush(request.where);
        cost["bytes"] = one.bytes;
        costs[one.name] = cost;
    }
    stream.synchronize();
    if (scanner.counters().incomplete()) throw Wrong(std::string("something was not scanned: ") + scanner.reason());
}

}  // namespace

void calls(Phase& phase) {
    phase.data["what"] = "nanoseconds of the host's thread, median of batches of calls";
    const Stream stream;
    driver_calls(phase, stream);
    scans(phase, stream);
    const auto shown = [&](const char* group, const char* name) { return brief(phase.data[group][name]); };
    phase.line = "host ns: cuLaunchKernel " + shown("driver_calls", "cuLaunchKernel, small table") +
                 ", cuStreamGetCaptureInfo " + shown("driver_calls", "cuStreamGetCaptureInfo") + ", a small scan " +
                 (phase.data["scans"].contains("small") ? shown("scans", "small") : "not measured");
}

}  // namespace numsan::gpu::probe
