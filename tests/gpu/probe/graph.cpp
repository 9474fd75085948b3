// What a scan adds to a captured graph, for each node that it is there for.
#include <memory>
#include <vector>

#include "tests/gpu/probe/table.h"

namespace numsan::gpu::probe {
namespace {

constexpr int kNodes = 50, kTurns = 15, kLaunches = 4;

enum class Scans : uint8_t { None, Each, Gated };

/// kNodes fills of memory, in order, each with a scan of what it wrote.
std::unique_ptr<Graph> graph_of(Phase& phase, const Stream& stream, const Buffer& buffer, size_t bytes, Scans scans) {
    Subject& subject = phase.subject;
    CudaScanner& scanner = subject.scanner();
    const uint64_t before = scanner.counters().captured;
    auto graph = std::make_unique<Graph>(stream, [&] {
        for (int i = 0; i < kNodes; ++i) {
            buffer.fill(0, size_t(i) * bytes, bytes, stream);
            if (scans == Scans::None) continue;
            const Shaped shaped(buffer.data(size_t(i) * bytes), DType::Float32, int64_t(bytes / 4));
            ScanRequest request;
            request.where = subject.on(stream);
            request.outputs = &shaped.view;
            request.output_count = 1;
            request.sequence = subject.sequence();
            scans == Scans::Gated ? scanner.scan_behind_gate(&request, 1) : scanner.scan(request);
        }
    });
    const uint64_t captured = scanner.counters().captured - before;
    if (captured != (scans == Scans::None ? 0 : uint64_t(kNodes)))
        throw Wrong(std::to_string(captured) + " scans were captured: " + scanner.reason());
    return graph;
}

Json measure(Phase& phase, size_t bytes) {
    const Stream stream;
    const Buffer buffer(bytes * kNodes);
    constexpr const char* kNames[] = {"bare", "scanned", "behind a closed gate"};
    std::unique_ptr<Graph> graphs[] = {graph_of(phase, stream, buffer, bytes, Scans::None),
                                       graph_of(phase, stream, buffer, bytes, Scans::Each),
                                       graph_of(phase, stream, buffer, bytes, Scans::Gated)};
    std::vector<double> times[3], nodes[3];
    for (int turn = -2; turn < kTurns && !(turn > 2 && phase.is_over()); ++turn) {
        double bare = 0;
        for (int which = 0; which < 3; ++which) {
            const double time =
                device_microseconds(stream, kLaunches, [&](int) { graphs[which]->launch(stream); }) / kLaunches;
            if (which == 0) bare = time;
            if (turn < 0) continue;
            times[which].push_back(time);
            nodes[which].push_back((time - bare) / kNodes);
        }
    }
    Json row{{"bytes_a_node", bytes}, {"nodes", kNodes}};
    for (int which = 0; which < 3; ++which) {
        row[kNames[which]] = {{"microseconds", spread(times[which])}};
        if (which != 0) row[kNames[which]]["microseconds_a_node"] = spread(nodes[which]);
    }
    int hits = 0;
    phase.subject.scanner().poll_replays([&](const Hit&) { ++hits; });
    if (hits != 0) throw Wrong("finite values were called bad");
    return row;
}

}  // namespace

void graph(Phase& phase) {
    phase.data["what"] = "device time of replays, and what of it a scan adds to a node that fills memory";
    Json& rows = phase.data["rows"] = Json::array();
    for (const size_t wanted : {size_t(4) << 10, size_t(1) << 20}) {
        const size_t bytes = phase.subject.fitting(wanted, kNodes);
        if (phase.is_over()) break;
        rows.push_back(measure(phase, bytes));
        phase.note();
    }
    if (rows.empty()) return;
    phase.line = "us a node: scanned " + brief(rows[0]["scanned"]["microseconds_a_node"]) + ", behind a closed gate " +
                 brief(rows[0]["behind a closed gate"]["microseconds_a_node"]);
}

}  // namespace numsan::gpu::probe
