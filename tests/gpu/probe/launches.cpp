// What a launch costs the host and the device: of the two tables, and of one whose gate is closed.
#include <vector>

#include "tests/gpu/probe/table.h"

namespace numsan::gpu::probe {
namespace {

constexpr int kTurns = 31;

struct Case {
    const char* name;
    size_t bytes;  ///< of each tensor
    int tensors;
    Size size;
    bool gated;
    Look look = Look::AsNeeded;
};

Json measure(Phase& phase, const Stream& stream, const Buffer& buffer, const Case& one) {
    // Clears no gate: that would be a word more to count for the blocks.
    Table table(phase.subject, 2, {.is_behind = one.gated});
    const Shaped shaped(buffer.data(), DType::Float32, int64_t(one.bytes / 4));
    add_outputs(table.filler(), std::vector<TensorView>(size_t(one.tensors), shaped.view));
    table.close(one.size, one.look);
    const int train = one.size == Size::Large ? kTrain / 4 : kTrain;  // 32 KB of parameters each
    std::vector<double> device, host;
    for (int turn = -2; turn < kTurns && !(turn > 2 && phase.is_over()); ++turn) {
        const double microseconds = device_microseconds(stream, train, [&](int) { table.launch(stream); });
        stream.synchronize();
        const Clock::time_point began = Clock::now();
        for (int i = 0; i < train; ++i) table.launch(stream);
        const double nanoseconds = nanoseconds_since(began);
        stream.synchronize();
        if (turn < 0) continue;
        device.push_back(microseconds / train);
        host.push_back(nanoseconds / train);
    }
    return {{"bytes", one.bytes},
            {"tensors", one.tensors},
            {"blocks", table.blocks()},
            {"look_blocks", table.look_blocks()},
            {"device_microseconds", spread(device)},
            {"host_nanoseconds", spread(host)}};
}

}  // namespace

void launches(Phase& phase) {
    constexpr size_t kSmall = 1024;
    const size_t large = phase.subject.fitting(size_t(64) << 20, 2);
    const Case cases[] = {{"small table", kSmall, 1, Size::Fitting, false},
                          {"small table, full", kSmall, kBatchOutputs, Size::Fitting, false},
                          {"small table, and a look", kSmall, 1, Size::Fitting, false, Look::Always},
                          {"large table", kSmall, 1, Size::Large, false},
                          {"large table, full", kSmall, kBatchOutputs, Size::Large, false},
                          {"small table, gate closed", kSmall, 1, Size::Fitting, true},
                          {"small table of a large tensor, gate closed", large, 1, Size::Fitting, true},
                          {"large table, gate closed", kSmall, 1, Size::Large, true},
                          {"large table of a large tensor, gate closed", large, 1, Size::Large, true}};
    const Stream stream;
    const Buffer buffer(large);
    buffer.fill(0, stream);
    phase.data["what"] =
        "a launch in a train of them, back to back on the device; with look_blocks a scan and its look";
    Json& rows = phase.data["launches"];
    for (const Case& one : cases) {
        if (phase.is_over()) break;
        rows[one.name] = measure(phase, stream, buffer, one);
    }
    phase.line = "device us a launch:";
    for (const char* name : {"small table", "large table", "small table, gate closed"}) {
        if (rows.contains(name))
            phase.line += std::string(" ") + name + " " + brief(rows[name]["device_microseconds"]) + ";";
    }
}

}  // namespace numsan::gpu::probe
