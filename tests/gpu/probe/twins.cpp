// The kernels on the device against their source on the host: every pattern, sizes, layouts, gate, streams, replays.
#include "tests/gpu/probe/twins.h"
#include "tests/gpu/probe/twin.h"

namespace numsan::gpu::probe {
namespace {

class TypeTwins {
  public:
    TypeTwins(Phase& phase, DType dtype, Disagreements& wrong)
        : phase_(phase), dtype_(dtype), type_(info(dtype)), wrong_(wrong), random_(phase.subject.seed) {}

    /// Each pattern of a narrow type as a tensor of its own, and all of them as one.
    void every_pattern() {
        const int64_t patterns = int64_t(1) << (8 * type_.lane_bytes);
        Lanes lanes(dtype_, patterns);
        for (int64_t i = 0; i < patterns; ++i) lanes.set(i, static_cast<uint64_t>(i));
        one_by_one(lanes, "every pattern alone");
        const Copied copied(lanes, dtype_, stream_);
        const Shaped all(lanes.data(), dtype_, patterns / type_.lanes);
        compare({copied.paired(all)}, {}, "every pattern in one tensor");
    }

    void borders() {
        const std::vector<uint64_t> patterns = edges(type_);
        Lanes lanes(dtype_, static_cast<int64_t>(patterns.size()) * type_.lanes);
        for (int64_t i = 0; i < lanes.count(); ++i) lanes.set(i, patterns[size_t(i) % patterns.size()]);
        one_by_one(lanes, "borders of the classes");
    }

    void sizes() {
        const int64_t largest = int64_t(phase_.subject.max_bytes / type_.element_bytes());
        for (const int64_t elements : {1, 2, 3, 15, 17, 255, 1000, 4097, 65537, 300001}) {
            if (elements > largest || phase_.is_over()) return;
            for (const bool bad : {false, true}) {
                for (const int64_t start : {0, 1, 5}) {
                    if (elements > 65537 && start != 0) continue;
                    Lanes lanes(dtype_, (elements + start) * type_.lanes);
                    fill(lanes, dtype_, bad, random_);
                    const Copied copied(lanes, dtype_, stream_);
                    const Shaped shaped(lanes.data() + size_t(start) * type_.element_bytes(), dtype_, elements);
                    const std::string what = std::to_string(elements) + " elements from " + std::to_string(start) +
                                             (bad ? ", bad" : ", finite");
                    compare({copied.paired(shaped)}, {}, what);
                    if (start != 0) continue;
                    compare({copied.paired(shaped)}, {.size = Size::Large}, what + ", the large table");
                    compare({copied.paired(shaped)}, {.look = Look::Always}, what + ", a look");
                    if (bad) continue;
                    compare({copied.paired(shaped)}, {.exact = true}, what + ", told");
                    compare({copied.paired(shaped)}, {.exact = true, .look = Look::Always}, what + ", told by a look");
                }
            }
        }
    }

    void layouts() {
        Lanes lanes(dtype_, 64 * 96 * type_.lanes);
        fill(lanes, dtype_, true, random_);
        const Copied copied(lanes, dtype_, stream_);
        const std::vector<Shaped> shapes = {
            {lanes.data(), dtype_, {96, 64}, {1, 96}},        // transposed
            {lanes.data(), dtype_, {64, 50}, {96, 1}},        // rows with gaps
            {lanes.data(), dtype_, {32, 48}, {192, 2}},       // every second of every second
            {lanes.data(), dtype_, {7, 64, 96}, {0, 96, 1}},  // expanded
            {lanes.data(), dtype_, {8, 8, 12, 8}, {8, 768, 64, 1}},
        };
        for (size_t i = 0; i < shapes.size(); ++i) {
            compare({copied.paired(shapes[i])}, {}, "layout " + std::to_string(i));
            compare({copied.paired(shapes[i])}, {.look = Look::Always}, "a look at layout " + std::to_string(i));
        }
    }

    int64_t compared() const { return compared_; }

  private:
    void one_by_one(Lanes& lanes, const std::string& what) {
        const Copied copied(lanes, dtype_, stream_);
        std::vector<Paired> batch;
        const int64_t elements = lanes.count() / type_.lanes;
        std::vector<Shaped> shapes;
        for (int64_t i = 0; i < elements; ++i) {
            shapes.emplace_back(lanes.data() + size_t(i) * type_.element_bytes(), dtype_, 1);
            if (shapes.size() < size_t(kBatchOutputs) && i + 1 < elements) continue;
            for (const Shaped& shaped : shapes) batch.push_back(copied.paired(shaped));
            compare(batch, {}, what);
            batch.clear();
            shapes.clear();
            if (phase_.is_over()) return;
        }
    }

    void compare(const std::vector<Paired>& tensors, const TwinOptions& options, const std::string& what) {
        compared_ += int64_t(tensors.size());
        wrong_.add(what, compare_with_twin(phase_.subject, stream_, tensors, options));
    }

    Phase& phase_;
    const DType dtype_;
    const DTypeInfo& type_;
    Disagreements& wrong_;
    std::mt19937_64 random_;
    Stream stream_;
    int64_t compared_ = 0;
};

}  // namespace

void twins(Phase& phase) {
    Disagreements wrong(phase.data);
    gate(phase, wrong);
    eight_streams(phase, wrong);
    looks(phase, wrong);
    phase.note();
    int64_t compared = 0;
    size_t types = 0;
    phase.data["tensors_compared"] = Json::object();
    for (const DType dtype : all_types()) {
        if (phase.is_over()) break;
        TypeTwins of_type(phase, dtype, wrong);
        of_type.borders();
        of_type.layouts();
        of_type.sizes();
        if (info(dtype).lane_bytes <= 2) of_type.every_pattern();
        compared += of_type.compared();
        phase.data["tensors_compared"][info(dtype).name] = of_type.compared();
        ++types;
        phase.note();
    }
    replays(phase, wrong);  // last: a driver that captures nothing hides no more
    looks_in_replays(phase, wrong);
    if (wrong.count() != 0) throw Wrong(std::to_string(wrong.count()) + " disagreements: " + wrong.first());
    if (phase.cut_short) throw Wrong("no time was left to compare all types; no disagreement so far");
    phase.line = std::to_string(compared) + " tensors of " + std::to_string(types) +
                 " types as on the host; gate, eight streams, looks, replays";
}

}  // namespace numsan::gpu::probe
