// How long it is from the launch of a bad tensor's scan until the host has its hit.
#include <optional>
#include <vector>

#include "tests/gpu/probe/table.h"

namespace numsan::gpu::probe {
namespace {

constexpr int kTurns = 51;
constexpr double kPatience = 2;  // seconds

Json measure(Phase& phase, const Stream& stream, const Buffer& buffer, size_t bytes) {
    Subject& subject = phase.subject;
    CudaScanner& scanner = subject.scanner();
    const Shaped shaped(buffer.data(), DType::Float32, int64_t(bytes / 4));
    std::vector<double> hits, results, scans;
    int dropped = 0;
    for (int turn = -3; turn < 2 * kTurns && !(turn > 3 && phase.is_over()); ++turn) {
        const bool bad = turn % 2 == 0;
        buffer.fill(bad ? 0xff : 0, bytes / 2, 4, stream);
        stream.synchronize();
        ScanRequest request;
        request.where = subject.on(stream);
        request.outputs = &shaped.view;
        request.output_count = 1;
        request.sequence = subject.sequence();
        const Clock::time_point began = Clock::now();
        scanner.scan(request);
        const double launched = nanoseconds_since(began);
        std::optional<double> seen;
        bool told = false;
        while (!seen && !told) {
            if (bad) {
                scanner.poll([&](const Hit& hit) {
                    if (hit.sequence == request.sequence) seen = nanoseconds_since(began);
                });
                const CudaScanner::Outcome outcome = scanner.outcome(request.sequence);
                told = outcome.answer == DeviceScanner::Answer::Read && !outcome.has_hit;
            } else if (scanner.outcome(request.sequence).answer != DeviceScanner::Answer::NotYet) {
                seen = nanoseconds_since(began);
            }
            if (!seen && scanner.is_off()) throw Wrong(std::string("the scanner is off: ") + scanner.reason());
            if (!seen && seconds_since(began) > kPatience)
                throw Wrong(bad ? "no hit of a bad tensor after 2 s" : "no result of a tensor after 2 s");
        }
        if (told && !seen) {
            if (!scanner.outcome(request.sequence).range.suspicious) throw Wrong("a bad tensor was called finite");
            ++dropped;  // no time for the exact pass
        }
        scanner.forget(request.sequence);
        if (turn < 0 || !seen) continue;
        (bad ? hits : results).push_back(*seen * 1e-3);
        scans.push_back(launched * 1e-3);
    }
    return {{"bytes", bytes},
            {"hit_microseconds", spread(hits)},
            {"bad_without_a_hit", dropped},
            {"result_of_a_finite_one_microseconds", spread(results)},
            {"of_them_in_the_call_microseconds", spread(scans)}};
}

}  // namespace

void latency(Phase& phase) {
    phase.data["what"] =
        "host clock, from before the scan's call until the host's poll has it; the stream is empty before";
    Json& rows = phase.data["rows"] = Json::array();
    const size_t largest = phase.subject.fitting(size_t(64) << 20, 2);
    const Stream stream;
    const Buffer buffer(largest);
    buffer.fill(0, stream);
    for (size_t bytes = 4096; bytes <= largest; bytes *= 128) {
        if (phase.is_over()) break;
        rows.push_back(measure(phase, stream, buffer, bytes));
    }
    if (!rows.empty())
        phase.line =
            "a hit of " + rows[0]["bytes"].dump() + " bytes after " + brief(rows[0]["hit_microseconds"]) + " us";
}

}  // namespace numsan::gpu::probe
