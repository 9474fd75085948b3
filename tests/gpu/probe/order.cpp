// Gate, streams and graphs on a device: what depends on the order in which launches run.
#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "tests/gpu/probe/twin.h"
#include "tests/gpu/probe/twins.h"

namespace numsan::gpu::probe {
namespace {

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

void put(const Buffer& buffer, const std::vector<float>& values, CUstream stream) {
    buffer.put(values.data(), values.size() * sizeof(float), stream);
    check("cuStreamSynchronize", gpu().stream_synchronize(stream));
}

TensorView float_view(const Shaped& shaped, const Buffer& buffer) {
    TensorView view = shaped.view;
    view.data = view.storage = view.storage_data = buffer.data();
    view.storage_bytes = static_cast<int64_t>(buffer.bytes());
    return view;
}

ScanRequest request_of(Subject& subject, CUstream stream, const TensorView& view) {
    ScanRequest request;
    request.where = subject.on(stream);
    request.outputs = &view;
    request.output_count = 1;
    request.sequence = subject.sequence();
    return request;
}

}  // namespace

void gate(Phase& phase, Disagreements& wrong) {
    Subject& subject = phase.subject;
    const Stream stream;
    std::vector<float> loss(1, 1.0F), values(40000, 1.0F);
    values.back() = kNotANumber;
    const Buffer of_loss(4), behind(values.size() * 4);
    put(behind, values, stream);
    Table opens(subject, 1), step(subject, 1, {.is_behind = true, .clears = true});
    const auto add = [](Table& table, const Buffer& buffer, uint32_t slot, uint8_t flags) {
        const Shaped shaped(buffer.data(), DType::Float32, static_cast<int64_t>(buffer.bytes() / 4));
        if (table.filler().add(shaped.view, slot, slot, flags) != Admission::Added) throw Wrong("a table has no room");
        table.close();
    };
    add(opens, of_loss, 0, kRaisesGate);
    add(step, behind, 1, 0);
    const RangeResult* results = subject.state().results_host;
    for (const bool bad : {false, true, false}) {
        loss[0] = bad ? kNotANumber : 1.0F;
        put(of_loss, loss, stream);
        std::fill_n(subject.state().results_host, 2, RangeResult{});
        forget_debt(subject, stream);
        opens.launch(stream);
        step.launch(stream);
        stream.synchronize();
        const size_t hits = take_hits(subject).size();
        const std::string state = bad ? "open" : "closed";
        if (results[0].sequence_plus_one != 1) wrong.add("gate", "the loss was not read");
        if ((results[1].sequence_plus_one != 0) != bad)
            wrong.add("gate", state + ", and the tensor behind it was not treated so");
        if (hits != (bad ? 2U : 0U)) wrong.add("gate", state + ", and there are " + std::to_string(hits) + " hits");
    }
    phase.data["gate"] = "closed, open, closed";
}

void eight_streams(Phase& phase, Disagreements& wrong) {
    constexpr int kStreams = 8, kRounds = 16;
    constexpr int64_t kElements = 50000;
    Subject& subject = phase.subject;
    CudaScanner& scanner = subject.scanner();
    std::mt19937_64 random(subject.seed);
    struct One {
        Stream stream;
        Lanes lanes{DType::BFloat16, kElements};
        Buffer buffer{size_t(kElements) * 2};
        Shaped shaped{lanes.data(), DType::BFloat16, kElements};
        Summary want{};
        std::vector<uint64_t> sequences;
    };
    std::vector<std::unique_ptr<One>> all;
    for (int i = 0; i < kStreams; ++i) {
        One& one = *all.emplace_back(std::make_unique<One>());
        fill(one.lanes, DType::BFloat16, i % 2 == 1, random);
        one.want = reference_scan(one.shaped.view);
        one.buffer.put(one.lanes.data(), one.buffer.bytes(), one.stream);
    }
    for (int round = 0; round < kRounds; ++round) {
        for (const std::unique_ptr<One>& one : all) {
            const TensorView view = float_view(one->shaped, one->buffer);
            const ScanRequest request = request_of(subject, one->stream, view);
            one->sequences.push_back(request.sequence);
            scanner.scan(request);
        }
    }
    for (const std::unique_ptr<One>& one : all) one->stream.synchronize();
    std::map<uint64_t, Health> told;
    scanner.poll([&](const Hit& hit) { told[hit.sequence] = hit.health; });
    for (int i = 0; i < kStreams; ++i) {
        for (const uint64_t sequence : all[size_t(i)]->sequences) {
            const Summary& want = all[size_t(i)]->want;
            const CudaScanner::Outcome got = scanner.outcome(sequence);
            const auto hit = told.find(sequence);
            std::string text;
            if (got.answer != DeviceScanner::Answer::Read) text += "not read; ";
            if (got.range.max_magnitude != want.largest) text += "another largest magnitude; ";
            if (got.range.min_nonzero_magnitude != want.smallest_nonzero) text += "another smallest magnitude; ";
            if ((hit != told.end()) != (want.health.first_bad >= 0)) text += "told wrongly that it is bad or not; ";
            if (hit != told.end()) text += difference(hit->second, want.health);
            wrong.add("stream " + std::to_string(i) + " of eight", text);
            scanner.forget(sequence);
        }
    }
    phase.data["streams"] = {{"streams", kStreams}, {"scans", kStreams * kRounds}, {"hits", told.size()}};
}

void replays(Phase& phase, Disagreements& wrong) {
    Subject& subject = phase.subject;
    CudaScanner& scanner = subject.scanner();
    const Stream stream;
    std::vector<float> good(1000, 1.0F), bad = good;
    bad[700] = kNotANumber;
    const Buffer buffer(4000);
    put(buffer, good, stream);
    const Shaped shaped(buffer.data(), DType::Float32, 1000);
    const TensorView view = float_view(shaped, buffer);
    const uint64_t before = scanner.counters().captured;
    uint64_t number = 0;
    const Graph graph(stream, [&] {
        const ScanRequest request = request_of(subject, stream, view);
        number = request.sequence;
        scanner.scan(request);
    });
    if (scanner.counters().captured != before + 1)
        throw Wrong(std::string("nothing was captured: ") + scanner.reason());
    for (uint64_t replay = 1; replay <= 3; ++replay) {
        put(buffer, replay == 2 ? bad : good, stream);
        graph.launch(stream);
        stream.synchronize();
        int found = 0;
        scanner.poll_replays([&](const Hit& hit) {
            ++found;
            if (hit.sequence != number || hit.replay != 2 || hit.health.first_bad != 700)
                wrong.add("replay", "output " + std::to_string(hit.sequence) + " of replay " +
                                        std::to_string(hit.replay) + " is told to be bad at " +
                                        std::to_string(hit.health.first_bad));
        });
        if (found != (replay == 2 ? 1 : 0))
            wrong.add("replay", std::to_string(found) + " hits of replay " + std::to_string(replay));
    }
    phase.data["replays"] = 3;
}

}  // namespace numsan::gpu::probe
