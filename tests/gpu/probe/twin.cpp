#include "tests/gpu/probe/twin.h"

#include <algorithm>
#include <cstring>
#include <sstream>

namespace numsan::gpu::probe {
namespace {

/// What a launch left: a result for each output, and the hits by output.
struct Left {
    std::vector<RangeResult> results;
    std::vector<const HitSlot*> hits;
    std::vector<HitSlot> slots;

    /// False where a hit is of no output, or the second of one.
    bool sort(size_t outputs) {
        hits.assign(outputs, nullptr);
        for (const HitSlot& slot : slots) {
            if (slot.slot >= outputs || hits[slot.slot] != nullptr) return false;
            hits[slot.slot] = &slot;
        }
        return true;
    }
};

Left on_device(Subject& subject, CUstream stream, const std::vector<Paired>& tensors, const TwinOptions& options,
               uint32_t& blocks) {
    Table table(subject);
    std::vector<TensorView> views;
    for (const Paired& tensor : tensors) views.push_back(tensor.device_view());
    add_outputs(table.filler(), views, options.exact ? uint8_t(kExact) : uint8_t(0));
    table.close(options.size);
    blocks = table.blocks();
    RangeResult* results = subject.state().results_host;
    std::fill_n(results, tensors.size(), RangeResult{});
    table.launch(stream);
    check("cuStreamSynchronize", gpu().stream_synchronize(stream));
    return Left{std::vector<RangeResult>(results, results + tensors.size()), {}, take_hits(subject)};
}

/// In blocks as many as on the device, and another order.
Left on_host(const std::vector<Paired>& tensors, const TwinOptions& options, uint32_t blocks) {
    static Words words(1024, 64, kBatchOutputs);
    static HitReader reader(words.ring(), words.capacity());
    static BatchFiller filler;
    std::vector<TensorView> views;
    for (const Paired& tensor : tensors) views.push_back(tensor.on_host);
    filler.begin(words.header());
    add_outputs(filler, views, options.exact ? uint8_t(kExact) : uint8_t(0));
    if (!filler.close()) throw Wrong("a table has nothing to launch");
    std::fill(words.results.begin(), words.results.end(), RangeResult{});
    run(filler, Grid{blocks, 1, 7});
    if (!words.at_rest()) throw Wrong("the scratch of the host's twin is not at rest");
    return Left{std::vector<RangeResult>(words.results.begin(), words.results.begin() + int64_t(tensors.size())),
                {},
                words.take(reader)};
}

/// But for the ticket, which comes first.
bool same_hit(const HitSlot& a, const HitSlot& b) {
    static_assert(offsetof(HitSlot, sequence) == sizeof a.ready);
    return std::memcmp(&a.sequence, &b.sequence, sizeof a - sizeof a.ready) == 0;
}

std::string difference_of(const RangeResult& got, const RangeResult& want, const HitSlot* hit, const HitSlot* twins) {
    std::ostringstream out;
    NUMSAN_COMPARE(sequence_plus_one)
    NUMSAN_COMPARE(bad)
    NUMSAN_COMPARE(largest)
    NUMSAN_COMPARE(smallest_nonzero)
    if ((hit == nullptr) != (twins == nullptr)) {
        out << (hit == nullptr ? "no hit; " : "a hit; ");
    } else if (hit != nullptr && !same_hit(*hit, *twins)) {
        const std::string health = difference(to_health(*hit), to_health(*twins));
        out << (health.empty() ? "the hit has other bytes; " : health);
    }
    return out.str();
}

}  // namespace

std::string compare_with_twin(Subject& subject, CUstream stream, const std::vector<Paired>& tensors,
                              const TwinOptions& options) {
    uint32_t blocks = 0;
    Left device = on_device(subject, stream, tensors, options, blocks);
    Left host = on_host(tensors, options, blocks);
    if (!host.sort(tensors.size())) throw Wrong("the host's twin reports hits of no output");
    if (!device.sort(tensors.size())) return "the device reports hits of no output, or twice";
    std::ostringstream out;
    for (size_t i = 0; i < tensors.size(); ++i) {
        const TensorView& view = tensors[i].on_host;
        std::string text = difference_of(device.results[i], host.results[i], device.hits[i], host.hits[i]);
        if (options.oracle && !options.exact) text += difference(device.results[i], device.hits[i], view);
        if (options.oracle && options.exact && device.hits[i] != nullptr)
            text += difference(to_health(*device.hits[i]), reference_scan(view).health);
        if (!text.empty()) out << info(view.dtype).name << " output " << i << ": " << text;
    }
    return out.str();
}

void fill(Lanes& lanes, DType dtype, bool bad, std::mt19937_64& random) {
    const DTypeInfo& type = info(dtype);
    const std::vector<uint64_t> borders = edges(type);
    for (int64_t i = 0; i < lanes.count(); ++i) lanes.set(i, finite(type, random));
    for (int n = 0; bad && n < 5; ++n) {
        lanes.set(static_cast<int64_t>(random() % uint64_t(lanes.count())), borders[random() % borders.size()]);
        lanes.set(static_cast<int64_t>(random() % uint64_t(lanes.count())), nan_of(type));
    }
}

}  // namespace numsan::gpu::probe
