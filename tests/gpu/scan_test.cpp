// Kernels and engine on a real GPU, against the oracle on the host. Label `gpu`: skipped, with the reason, where there
// is none; the same tests also run on the fake driver.
#include <random>
#include <sstream>
#include <vector>

#include "cuda/kernel/scan_policy.h"
#include "tests/cuda/compare.h"
#include "tests/gpu/driver.h"

namespace numsan::gpu {
namespace {

class OnGpu : public testing::TestWithParam<DType> {
  protected:
    void SetUp() override {
        static const std::string missing = gpu().open();
        if (!missing.empty()) GTEST_SKIP() << missing;
    }

    /// Hands `views` over as the outputs of one op, waits, and compares all that was told. Empty when it is right.
    static std::string scan_and_compare(const std::vector<TensorView>& on_host, const std::vector<const void*>& data) {
        static CudaScanner scanner;
        static uint64_t next = 1;
        const uint64_t first = next;
        next += on_host.size();
        const StreamRef where{gpu().context, gpu().stream};
        if (!scanner.prepare(where)) return std::string("no scanner: ") + scanner.reason();
        std::vector<TensorView> views = on_host;
        for (size_t i = 0; i < views.size(); ++i) {
            views[i].data = views[i].storage = views[i].storage_data = data[i];
            views[i].storage_bytes = 1;
        }
        ScanRequest request;
        request.where = where;
        request.outputs = views.data();
        request.output_count = static_cast<int>(views.size());
        request.sequence = first;
        scanner.scan(request);
        EXPECT_EQ(gpu().synchronize(), CUDA_SUCCESS);
        std::vector<Health> healths(views.size(), Health{});
        std::vector<bool> told(views.size());
        scanner.poll([&](const Hit& hit) {
            healths[hit.sequence - first] = hit.health;
            told[hit.sequence - first] = true;
        });
        std::ostringstream out;
        for (size_t i = 0; i < views.size(); ++i) {
            const Summary want = reference_scan(on_host[i]);
            const CudaScanner::Outcome outcome = scanner.outcome(first + i);
            const bool bad = want.health.first_bad >= 0;
            if (outcome.answer != DeviceScanner::Answer::Read) out << "output " << i << " was not read; ";
            if (outcome.range.max_magnitude != want.largest ||
                outcome.range.min_nonzero_magnitude != want.smallest_nonzero)
                out << "output " << i << ": magnitudes " << outcome.range.max_magnitude << ".."
                    << outcome.range.min_nonzero_magnitude << "; ";
            if (outcome.range.suspicious != bad || told[i] != bad) out << "output " << i << " is " << bad << "; ";
            if (told[i]) out << difference(healths[i], want.health);
            scanner.forget(first + i);
        }
        if (scanner.counters().incomplete()) out << "the scanner says that it is incomplete: " << scanner.reason();
        return out.str();
    }
};

TEST_P(OnGpu, SizesAndStartsAgreeWithTheOracle) {
    const DTypeInfo& type = info(GetParam());
    std::mt19937_64 random(1);
    for (const int64_t elements : {1, 2, 3, 15, 17, 255, 1000, 4097, 65537, 1 << 18}) {
        for (const bool bad : {false, true}) {
            for (const int64_t start : {0, 1, 5}) {
                Lanes lanes(GetParam(), (elements + start) * type.lanes);
                fill(lanes, GetParam(), bad, random);
                const DeviceCopy copy(lanes.data(), size_t(lanes.count()) * type.lane_bytes);
                const auto offset = size_t(start) * type.element_bytes();
                const Shaped shaped(lanes.data() + offset, GetParam(), elements);
                EXPECT_EQ(scan_and_compare({shaped.view}, {static_cast<const char*>(copy.data()) + offset}), "")
                    << type.name << ", " << elements << " elements from " << start << (bad ? ", bad" : "");
            }
        }
    }
}

TEST_P(OnGpu, LayoutsAgreeWithTheOracle) {
    const DTypeInfo& type = info(GetParam());
    std::mt19937_64 random(2);
    Lanes lanes(GetParam(), 64 * 96 * type.lanes);
    fill(lanes, GetParam(), true, random);
    const DeviceCopy copy(lanes.data(), size_t(lanes.count()) * type.lane_bytes);
    const std::vector<Shaped> layouts = {
        {lanes.data(), GetParam(), {96, 64}, {1, 96}},        // transposed
        {lanes.data(), GetParam(), {64, 50}, {96, 1}},        // rows with gaps
        {lanes.data(), GetParam(), {32, 48}, {192, 2}},       // every second of every second
        {lanes.data(), GetParam(), {7, 64, 96}, {0, 96, 1}},  // expanded
        {lanes.data(), GetParam(), {8, 8, 12, 8}, {8, 768, 64, 1}},
    };
    for (const Shaped& shaped : layouts)
        EXPECT_EQ(scan_and_compare({shaped.view}, {copy.data()}), "") << type.name << ", " << shaped.strides[0];
}

TEST_P(OnGpu, ABatchOfOutputsAgreesWithTheOracle) {
    const DTypeInfo& type = info(GetParam());
    std::mt19937_64 random(3);
    std::vector<std::unique_ptr<Lanes>> memory;
    std::vector<std::unique_ptr<DeviceCopy>> copies;
    std::vector<Shaped> shapes;
    std::vector<TensorView> views;
    std::vector<const void*> data;
    for (int i = 0; i < 3 * kBatchOutputs; ++i) {
        const auto elements = static_cast<int64_t>(1 + random() % 3000);
        memory.push_back(std::make_unique<Lanes>(GetParam(), elements * type.lanes));
        fill(*memory.back(), GetParam(), i % 5 == 0, random);
        copies.push_back(std::make_unique<DeviceCopy>(memory.back()->data(), size_t(elements) * type.element_bytes()));
        shapes.emplace_back(memory.back()->data(), GetParam(), elements);
        data.push_back(copies.back()->data());
    }
    for (const Shaped& shaped : shapes) views.push_back(shaped.view);
    EXPECT_EQ(scan_and_compare(views, data), "") << type.name;
}

INSTANTIATE_TEST_SUITE_P(Types, OnGpu, testing::ValuesIn(all_types()), type_name);

using Replay = OnGpu;

TEST_P(Replay, OnlyTheBadReplayTells) {
    const std::vector<float> good(1000, 1.0F);
    std::vector<float> bad = good;
    bad[700] = std::numeric_limits<float>::quiet_NaN();
    DeviceCopy source(good.data(), 4000), result(good.data(), 4000);
    CudaScanner scanner;
    ASSERT_TRUE(scanner.prepare({gpu().context, gpu().stream})) << scanner.reason();
    ASSERT_EQ(gpu().synchronize(), CUDA_SUCCESS);
    Shaped shaped(result.data(), DType::Float32, 1000);
    shaped.view.storage = shaped.view.storage_data = result.data();
    shaped.view.storage_bytes = 4000;
    ASSERT_EQ(gpu().begin_capture(gpu().stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    ASSERT_EQ(gpu().copy(result.address(), source.address(), 4000, gpu().stream), CUDA_SUCCESS);
    ScanRequest request;
    request.where = {gpu().context, gpu().stream};
    request.outputs = &shaped.view;
    request.output_count = 1;
    request.sequence = 7;
    scanner.scan(request);
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    ASSERT_EQ(gpu().end_capture(gpu().stream, &graph), CUDA_SUCCESS);
    ASSERT_EQ(gpu().instantiate(&exec, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(scanner.counters().captured, 1u) << scanner.reason();
    for (uint64_t replay = 1; replay <= 3; ++replay) {
        source.set(replay == 2 ? bad.data() : good.data());
        ASSERT_EQ(gpu().launch_graph(exec, gpu().stream), CUDA_SUCCESS);
        ASSERT_EQ(gpu().synchronize(), CUDA_SUCCESS);
        int found = 0;
        scanner.poll_replays([&](const Hit& hit) {
            ++found;
            EXPECT_EQ(hit.sequence, 7u);
            EXPECT_EQ(hit.replay, 2u);
            EXPECT_EQ(hit.health.first_bad, 700);
        });
        EXPECT_EQ(found, replay == 2 ? 1 : 0) << "replay " << replay;
    }
    EXPECT_FALSE(scanner.counters().incomplete()) << scanner.reason();
}

INSTANTIATE_TEST_SUITE_P(Graphs, Replay, testing::Values(DType::Float32), type_name);

}  // namespace
}  // namespace numsan::gpu
