// Every output that was taken is answered once: what it holds, or why it was not read.

#include <random>
#include <set>
#include <thread>

#include "cuda/kernel/scan_policy.h"
#include "host/scan/cpu_scanner.h"
#include "tests/cuda/compare.h"
#include "tests/cuda/patterns.h"
#include "tests/cuda/scanner/device_fixture.h"

namespace numsan::gpu {
namespace {

using Answers = DeviceScannerTest;

class TypedAnswers : public DeviceScannerTest, public testing::WithParamInterface<DType> {};

/// Layouts over `lanes` elements, which is what they span at most.
std::vector<Shaped> layouts(const void* data, DType dtype, int64_t lanes) {
    const int64_t element = info(dtype).element_bytes();
    const auto at = [&](int64_t offset) { return static_cast<const unsigned char*>(data) + offset * element; };
    std::vector<Shaped> all;
    all.emplace_back(data, dtype, lanes);
    all.emplace_back(at(1), dtype, lanes - 3);
    all.emplace_back(at(2), dtype, std::vector<int64_t>{}, std::vector<int64_t>{});
    all.emplace_back(data, dtype, std::vector<int64_t>{0, 7}, std::vector<int64_t>{7, 1});
    all.emplace_back(data, dtype, std::vector<int64_t>{lanes / 10, 7}, std::vector<int64_t>{10, 1});
    all.emplace_back(data, dtype, std::vector<int64_t>{9, lanes / 9}, std::vector<int64_t>{1, 9});
    all.emplace_back(at(3), dtype, std::vector<int64_t>{5, lanes / 16, 3}, std::vector<int64_t>{0, 8, 2});
    all.emplace_back(data, dtype, std::vector<int64_t>{4, 5, 6, 1}, std::vector<int64_t>{7, 31, 2, 99});
    all.emplace_back(data, dtype, std::vector<int64_t>{20, 8}, std::vector<int64_t>{3, 1});
    return all;
}

TEST_P(TypedAnswers, AreThoseOfTheHostsScanner) {
    const DTypeInfo& type = info(GetParam());
    const auto scanner = make_cuda_scanner();
    std::mt19937_64 random(17);
    const CpuScanner host;
    uint64_t sequence = 0;
    for (int round = 0; round < 12; ++round) {
        Lanes lanes(GetParam(), 6000 * type.lanes);
        for (int64_t i = 0; round != 0 && i < lanes.count(); ++i) lanes.set(i, finite(type, random));
        if (round % 3 == 2) {
            const std::vector<uint64_t> patterns = edges(type);
            for (int i = 0; i < 40; ++i) {
                const int64_t at = static_cast<int64_t>(random() % uint64_t(lanes.count()));
                lanes.set(at, patterns[random() % patterns.size()]);
            }
        }
        const std::vector<Shaped> all = layouts(lanes.data(), GetParam(), 6000);
        std::vector<TensorView> views;
        for (const Shaped& shaped : all) views.push_back(shaped.view);
        ASSERT_EQ(scan(*scanner, views.data(), int(views.size()), sequence, stream), Taken::Now);
        synchronize(*scanner);
        for (size_t i = 0; i < views.size(); ++i, ++sequence) {
            DeviceScanner::Reading reading{};
            ASSERT_EQ(name(scanner->answer(sequence, reading)), "read") << reading.why;
            const Range want = host.range(views[i]);
            EXPECT_EQ(reading.range.max_magnitude, want.max_magnitude) << round << ' ' << i;
            EXPECT_EQ(reading.range.min_nonzero_magnitude, want.min_nonzero_magnitude) << round << ' ' << i;
            EXPECT_EQ(reading.range.suspicious, want.suspicious) << round << ' ' << i;
            EXPECT_EQ(reading.has_hit, want.suspicious);
            if (reading.has_hit) {
                EXPECT_EQ(difference(reading.hit.output, host.health(views[i])), "") << i;
            }
            EXPECT_EQ(name(scanner->answer(sequence, reading)), "not yet") << "answered once";
        }
    }
    EXPECT_STREQ(scanner->reason(), "");
}

INSTANTIATE_TEST_SUITE_P(All, TypedAnswers, testing::ValuesIn(all_types()), type_name);

TEST_F(Answers, ComeWhenTheQueueGetsThere) {
    const auto scanner = make_cuda_scanner();
    GpuTensor tensor(1000);
    tensor.fill(stream, kOne);
    ASSERT_EQ(scan(*scanner, tensor, 0, stream), Taken::Now);
    synchronize(*scanner);
    fake_cuda::hold(true);
    tensor.set(stream, 700, kNan);
    ASSERT_EQ(scan(*scanner, tensor, 1, stream), Taken::Now);
    DeviceScanner::Reading reading{};
    const uint64_t calls = fake_cuda::calls(nullptr);
    EXPECT_EQ(scanner->answer(1, reading), Answer::NotYet);
    EXPECT_EQ(scanner->answer(0, reading), Answer::Read);
    EXPECT_FALSE(reading.range.suspicious);
    EXPECT_EQ(fake_cuda::calls(nullptr), calls) << "the reader calls nothing";
    fake_cuda::hold(false);
    synchronize(*scanner);
    EXPECT_EQ(scanner->answer(2, reading), Answer::NotYet) << "never handed over";
    ASSERT_EQ(scanner->answer(1, reading), Answer::Read);
    EXPECT_TRUE(reading.range.suspicious);
    ASSERT_TRUE(reading.has_hit);
    EXPECT_EQ(reading.hit.output.first_bad, 700);
    EXPECT_EQ(reading.hit.output.nan, 1);
    EXPECT_EQ(reading.hit.input_count, 0);
}

TEST_F(Answers, ManyOutputsHaveTheirOwn) {
    const auto scanner = make_cuda_scanner();
    constexpr int kCount = 3 * kBatchOutputs + 1;
    std::vector<std::unique_ptr<GpuTensor>> tensors;
    std::vector<TensorView> views;
    for (int i = 0; i < kCount; ++i) {
        tensors.push_back(std::make_unique<GpuTensor>(i + 1));
        tensors.back()->fill(stream, kOne + uint32_t(i));
        if (i % 3 == 0) tensors.back()->set(stream, i, kNan);
        views.push_back(tensors.back()->view);
    }
    const uint64_t first = (uint64_t(3) << 32) - 20;  // both sides of the border of 32 bits
    ASSERT_EQ(scan(*scanner, views.data(), kCount, first, stream), Taken::Now);
    synchronize(*scanner);
    for (int i = kCount - 1; i >= 0; --i) {
        DeviceScanner::Reading reading{};
        ASSERT_EQ(scanner->answer(first + uint64_t(i), reading), Answer::Read);
        EXPECT_EQ(reading.range.max_magnitude, i % 3 == 0 ? kNan : kOne + uint32_t(i));
        ASSERT_EQ(reading.has_hit, i % 3 == 0);
        if (reading.has_hit) {
            EXPECT_EQ(reading.hit.output.first_bad, i);
        }
    }
}

TEST_F(Answers, TheFirstReadableInputsAreLookedAt) {
    const auto scanner = make_cuda_scanner();
    GpuTensor output(10), good(20), bad(30);
    output.fill(stream, kNan);
    good.fill(stream, kOne);
    bad.fill(stream, kNan);
    std::vector<TensorView> inputs(DeviceHit::kMaxInputs + 4, good.view);
    inputs[0].flags = 0;  // not to be read
    inputs[2] = bad.view;
    inputs[4].numel = 0;
    int64_t none = 0;
    inputs[4].sizes = &none;
    inputs[DeviceHit::kMaxInputs] = bad.view;
    inputs[DeviceHit::kMaxInputs + 1] = bad.view;
    ASSERT_EQ(scan(*scanner, &output.view, 1, 7, stream, inputs.data(), int(inputs.size())), Taken::Now);
    synchronize(*scanner);
    DeviceScanner::Reading reading{};
    ASSERT_EQ(scanner->answer(7, reading), Answer::Read);
    ASSERT_TRUE(reading.has_hit);
    const int32_t expected[] = {1, 2, 3, 5, 6, 7, 8};  // the first kMaxInputs readable ones, less the empty one
    ASSERT_EQ(reading.hit.input_count, 7);
    for (int i = 0; i < 7; ++i) {
        const DeviceHit::Input& input = reading.hit.inputs[i];
        EXPECT_EQ(input.index, expected[i]);
        EXPECT_EQ(input.health.nan, expected[i] == 2 || expected[i] == DeviceHit::kMaxInputs ? 30 : 0);
        EXPECT_EQ(input.health.elements, inputs[size_t(expected[i])].numel);
    }
}

TEST_F(Answers, AFullRingLosesHitsButNoResults) {
    const auto scanner = make_cuda_scanner();
    GpuTensor tensor(2);
    tensor.fill(stream, kNan);
    constexpr uint64_t kCount = kRingCapacity + 10;
    for (uint64_t i = 0; i < kCount; ++i) ASSERT_EQ(scan(*scanner, tensor, i, stream), Taken::Now);
    synchronize(*scanner);
    uint64_t hits = 0;
    for (uint64_t i = 0; i < kCount; ++i) {
        DeviceScanner::Reading reading{};
        ASSERT_EQ(scanner->answer(i, reading), Answer::Read) << i;
        EXPECT_TRUE(reading.range.suspicious);
        EXPECT_EQ(reading.range.max_magnitude, kNan);
        EXPECT_EQ(reading.has_hit, i < kRingCapacity);
        hits += reading.has_hit;
    }
    EXPECT_EQ(hits, kRingCapacity);
    ASSERT_EQ(scan(*scanner, tensor, kCount, stream), Taken::Now);
    synchronize(*scanner);
    DeviceScanner::Reading reading{};
    ASSERT_EQ(scanner->answer(kCount, reading), Answer::Read);
    EXPECT_TRUE(reading.has_hit) << "there is room again";
}

TEST_F(Answers, NumbersGoRoundTheWindowManyTimes) {
    const auto scanner = make_cuda_scanner();
    EXPECT_EQ(scanner->window(), kResults);
    GpuTensor tensor(3);
    for (uint64_t i = 0; i < 40; ++i) {
        tensor.fill(stream, kOne + uint32_t(i));
        const uint64_t sequence = i * (scanner->window() / 2);
        ASSERT_EQ(scan(*scanner, tensor, sequence, stream), Taken::Now);
        if (i % 4 == 3) continue;  // given up
        synchronize(*scanner);
        DeviceScanner::Reading reading{};
        ASSERT_EQ(scanner->answer(sequence, reading), Answer::Read);
        EXPECT_EQ(reading.range.max_magnitude, kOne + uint32_t(i));
    }
}

TEST_F(Answers, WhatCannotBeDescribedIsAnsweredAtOnce) {
    const auto scanner = make_cuda_scanner();
    GpuTensor tensor(5), good(7);
    good.fill(stream, kOne);
    const int64_t minus[] = {-1};
    tensor.view.strides = minus;
    const TensorView views[] = {tensor.view, good.view};
    ASSERT_EQ(scan(*scanner, views, 2, 5, stream), Taken::Now);
    EXPECT_EQ(why_not(*scanner, 5), text(SkipReason::Unsupported));
    synchronize(*scanner);
    EXPECT_EQ(why_not(*scanner, 6), "read");
}

TEST_F(Answers, TheDeviceOfTheQueueCountsNotTheThreads) {
    const auto scanner = make_cuda_scanner();
    CUcontext second;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxPushCurrent(second), CUDA_SUCCESS);
    CUstream its_stream;
    ASSERT_EQ(cuStreamCreate(&its_stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    GpuTensor there(8);
    there.fill(its_stream, kNan);
    CUcontext popped;
    ASSERT_EQ(cuCtxPopCurrent(&popped), CUDA_SUCCESS);
    GpuTensor here(8);
    here.fill(stream, kOne);
    ASSERT_EQ(scan(*scanner, there, 1, its_stream, 1), Taken::Now) << scanner->reason();
    ASSERT_EQ(scan(*scanner, here, 2, stream, 0), Taken::Now) << scanner->reason();
    CUcontext current;
    ASSERT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, context);
    synchronize(*scanner);
    ASSERT_EQ(cuStreamSynchronize(its_stream), CUDA_SUCCESS);
    DeviceScanner::Reading reading{};
    ASSERT_EQ(scanner->answer(1, reading), Answer::Read);
    EXPECT_TRUE(reading.has_hit);
    ASSERT_EQ(scanner->answer(2, reading), Answer::Read);
    EXPECT_FALSE(reading.range.suspicious);
    const uint64_t asked = fake_cuda::calls("cuDevicePrimaryCtxRetain");
    scan(*scanner, here, 3, stream, 0);
    EXPECT_EQ(fake_cuda::calls("cuDevicePrimaryCtxRetain"), asked) << "the context is remembered";
    EXPECT_EQ(scan(*scanner, here, 4, stream, 2), Taken::No) << "there is no such device";
    EXPECT_EQ(scan(*scanner, here, 5, stream, 1000), Taken::No);
}

TEST_F(Answers, ReplaysTellByThemselves) {
    const auto scanner = make_cuda_scanner();
    GpuTensor source(100), copy(100);
    source.fill(stream, kOne);
    ASSERT_EQ(scan(*scanner, source, 0, stream), Taken::Now);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    constexpr uint64_t kNumber = (uint64_t(5) << 32) + 3;
    ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyDtoDAsync(copy.address(), source.address(), 400, stream), CUDA_SUCCESS);
    ASSERT_EQ(scan(*scanner, &copy.view, 1, kNumber, stream, &source.view, 1), Taken::Captured);
    CUgraph graph;
    CUgraphExec exec;
    ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    uint64_t sequence = 0;
    DeviceHit hit{};
    DeviceScanner::Reading reading{};
    for (int replay = 0; replay < 4; ++replay) {
        source.set(stream, 42, replay % 2 == 1 ? kNan : kOne);
        ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
        ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
        EXPECT_EQ(scanner->answer(kNumber, reading), Answer::NotYet);
        ASSERT_EQ(scanner->next_replayed(sequence, hit), replay % 2 == 1) << replay;
        if (replay % 2 == 0) continue;
        EXPECT_EQ(sequence, kNumber);
        EXPECT_EQ(hit.output.first_bad, 42);
        ASSERT_EQ(hit.input_count, 1);
        EXPECT_EQ(hit.inputs[0].health.nan, 1);
        EXPECT_FALSE(scanner->next_replayed(sequence, hit)) << "told once for each replay";
    }
    cuGraphExecDestroy(exec);
    cuGraphDestroy(graph);
}

TEST_F(Answers, InTheirOwnTimeToManyThreads) {
    fake_cuda::set_grid(2, 5);
    const auto scanner = make_cuda_scanner();
    GpuTensor warm(4);
    warm.fill(stream, kOne);
    ASSERT_EQ(scan(*scanner, warm, 0, stream), Taken::Now);
    constexpr int kThreads = 4;
    constexpr uint64_t kOps = 400;
    std::atomic<uint64_t> next{1};
    std::vector<std::atomic<int>> bad(kThreads * kOps + 1);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
            CUstream own[2];
            for (CUstream& s : own) ASSERT_EQ(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
            GpuTensor tensors[] = {GpuTensor(5000), GpuTensor(3)}, input(10);
            input.fill(own[0], kOne);
            ASSERT_EQ(cuStreamSynchronize(own[0]), CUDA_SUCCESS);  // the other one reads it too
            std::mt19937 random(static_cast<uint32_t>(t));
            for (uint64_t i = 0; i < kOps; ++i) {
                const size_t on = random() % 2;
                const uint64_t number = next++;
                bad[number] = random() % 6 == 0;
                tensors[on].fill(own[on], kOne);
                if (bad[number]) tensors[on].set(own[on], 2, kNan);
                EXPECT_EQ(scan(*scanner, &tensors[on].view, 1, number, own[on], &input.view, 1), Taken::Now);
            }
            ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
        });
    }
    std::set<uint64_t> waiting;
    for (uint64_t i = 0; i <= kThreads * kOps; ++i) waiting.insert(i);
    while (!waiting.empty()) {
        for (auto at = waiting.begin(); at != waiting.end();) {
            DeviceScanner::Reading reading{};
            const Answer answer = scanner->answer(*at, reading);
            if (answer == Answer::NotYet) {
                ++at;
                continue;
            }
            EXPECT_EQ(answer, Answer::Read) << reading.why;
            EXPECT_EQ(reading.range.suspicious, bad[*at] == 1);
            EXPECT_EQ(reading.has_hit, bad[*at] == 1);
            if (reading.has_hit) {
                EXPECT_EQ(reading.hit.output.first_bad, 2);
            }
            at = waiting.erase(at);
        }
        std::this_thread::yield();
    }
    for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace numsan::gpu
