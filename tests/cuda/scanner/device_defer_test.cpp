// Small outputs wait for each other with their inputs: what is held meanwhile, and what ends the wait.
#include <thread>

#include "cuda/kernel/scan_policy.h"
#include "tests/cuda/scanner/device_fixture.h"

namespace numsan::gpu {
namespace {

/// A tensor in a storage that can be pinned.
struct Lent {
    GpuTensor tensor;
    Storage storage;
    explicit Lent(int64_t elements, int64_t storage_bytes = 0) : tensor(elements) {
        if (storage_bytes != 0) tensor.view.storage_bytes = storage_bytes;
        storage.lie_in(tensor.view);
    }
};

class DeviceDeferral : public DeviceScannerTest {
  protected:
    void SetUp() override {
        ScannerTest::SetUp();
        scanner = make_cuda_scanner();
    }
    Taken scan(const Lent& output, uint64_t sequence, const std::vector<const Lent*>& inputs) {
        std::vector<TensorView> views;
        for (const Lent* input : inputs) views.push_back(input->tensor.view);
        return DeviceScannerTest::scan(*scanner, &output.tensor.view, 1, sequence, stream, views.data(),
                                       static_cast<int>(views.size()), 0, held_by);
    }
    DeviceScanner::Reading read(uint64_t sequence) {
        EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
        DeviceScanner::Reading reading{};
        EXPECT_EQ(name(scanner->answer(sequence, reading)), "read") << reading.why;
        return reading;
    }
    bool is_pending(uint64_t sequence) {
        EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
        DeviceScanner::Reading reading{};
        return scanner->answer(sequence, reading) == Answer::NotYet;
    }

    std::unique_ptr<DeviceScanner> scanner;
    const StorageApi* held_by = &kStorages;
};

TEST_F(DeviceDeferral, ABadOutputTellsOfItsInputs) {
    Lent output(10), good(20), bad(30), last(4);
    output.tensor.fill(stream, kNan);
    good.tensor.fill(stream, kOne);
    bad.tensor.fill(stream, kNan);
    last.tensor.fill(stream, kOne);
    ASSERT_EQ(scan(last, 1, {&good}), Taken::Now);
    ASSERT_EQ(scan(output, 2, {&good, &bad}), Taken::Now);
    EXPECT_TRUE(is_pending(2));
    for (const Lent* lent : {&output, &bad, &last}) EXPECT_EQ(lent->storage.held(), 1);
    EXPECT_EQ(good.storage.held(), 2);
    scanner->flush();
    const DeviceScanner::Reading reading = read(2);
    ASSERT_TRUE(reading.has_hit);
    EXPECT_EQ(reading.hit.output.nan, 10);
    ASSERT_EQ(reading.hit.input_count, 2);
    EXPECT_EQ(reading.hit.inputs[0].index, 0);
    EXPECT_EQ(reading.hit.inputs[0].health.elements, 20);
    EXPECT_EQ(reading.hit.inputs[1].index, 1);
    EXPECT_EQ(reading.hit.inputs[1].health.nan, 30);
    EXPECT_FALSE(read(1).range.suspicious);
    for (const Lent* lent : {&output, &good, &bad, &last}) EXPECT_EQ(lent->storage.held(), 0);
}

TEST_F(DeviceDeferral, AWriteOfAnInputComesAfterTheScan) {
    Lent output(10), input(20), other(20);
    output.tensor.fill(stream, kNan);
    input.tensor.fill(stream, kNan);
    scan(output, 1, {&input});
    scanner->before_write(&other.storage);
    scanner->before_write(&input.storage);
    input.tensor.fill(stream, kOne);
    EXPECT_EQ(read(1).hit.inputs[0].health.nan, 20) << "as it was before the write";
    EXPECT_EQ(input.storage.held(), 0);
}

TEST_F(DeviceDeferral, WhatIsScannedAtOnce) {
    Lent output(10), input(20), large(5, kDeferBelowBytes), gone(4);
    scan(large, 1, {&input});
    EXPECT_FALSE(is_pending(1)) << "a large output";
    scan(output, 2, {&input, &large});
    EXPECT_FALSE(is_pending(2)) << "a large input";
    scan(output, 3, {&input, &output});
    EXPECT_FALSE(is_pending(3)) << "written in place";
    gone.storage.lendable = false;
    scan(output, 4, {&input, &gone});
    EXPECT_FALSE(is_pending(4)) << "an input that cannot be held";
    scan(gone, 5, {&input});
    EXPECT_FALSE(is_pending(5)) << "an output that cannot be held";
    const std::vector<TensorView> many(kBatchOutputs + 1, output.tensor.view);
    DeviceScannerTest::scan(*scanner, many.data(), kBatchOutputs + 1, 6, stream, nullptr, 0, 0, held_by);
    EXPECT_FALSE(is_pending(6)) << "more than a batch holds";
    for (const Lent* lent : {&output, &input, &large, &gone}) EXPECT_EQ(lent->storage.held(), 0);
    scan(output, 100, {&input});
    EXPECT_TRUE(is_pending(100));
    scan(large, 101, {});
    EXPECT_FALSE(is_pending(100)) << "goes with the next one";
}

TEST_F(DeviceDeferral, NothingWaitsWithoutStorages) {
    held_by = nullptr;
    Lent output(10), input(20);
    scan(output, 1, {&input});
    EXPECT_FALSE(is_pending(1));
    EXPECT_EQ(output.storage.pinned, 0);
}

TEST_F(DeviceDeferral, TheThresholds) {
    Lent output(10), input(20, kDeferBelowBytes - 1);
    uint64_t sequence = 0;
    for (int i = 0; i < kBatchOutputs; ++i) {
        EXPECT_EQ(output.storage.held(), i);
        scan(output, sequence++, {});
    }
    EXPECT_EQ(output.storage.held(), 0) << "as many as a batch takes";
    const int needed = static_cast<int>(kDeferredBytes / (kDeferBelowBytes - 1 + 40)) + 1;
    for (int i = 0; i < needed; ++i) {
        EXPECT_EQ(input.storage.held(), i);
        scan(output, sequence++, {&input});
    }
    EXPECT_EQ(input.storage.held(), 0) << "as much as may be held";
    EXPECT_EQ(output.storage.held(), 0);
}

TEST_F(DeviceDeferral, AnInputThatLostItsMemoryIsLeftOut) {
    Lent output(10), input(20), gone(30);
    output.tensor.fill(stream, kNan);
    input.tensor.fill(stream, kOne);
    scan(output, 1, {&gone, &input});
    gone.storage.data = nullptr;
    scanner->flush();
    const DeviceScanner::Reading reading = read(1);
    ASSERT_TRUE(reading.has_hit);
    ASSERT_EQ(reading.hit.input_count, 1);
    EXPECT_EQ(reading.hit.inputs[0].index, 1);
    EXPECT_EQ(gone.storage.held(), 0);
    scan(output, 2, {&input});
    output.storage.bytes = 0;
    scanner->flush();
    EXPECT_EQ(why_not(*scanner, 2), text(SkipReason::Dead));
}

TEST_F(DeviceDeferral, NotWhileTheStreamIsCaptured) {
    Lent output(10), input(20);
    output.tensor.fill(stream, kNan);
    scan(output, 1, {&input});
    scanner->flush();
    EXPECT_TRUE(read(1).has_hit);
    ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(scan(output, 2, {&input}), Taken::Captured);
    EXPECT_EQ(output.storage.held(), 0);
    CUgraph graph;
    CUgraphExec exec;
    ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    uint64_t sequence = 0;
    DeviceHit hit{};
    EXPECT_TRUE(scanner->next_replayed(sequence, hit));
    EXPECT_EQ(sequence, 2u);
    cuGraphExecDestroy(exec);
    cuGraphDestroy(graph);
}

TEST_F(DeviceDeferral, WhatIsGivenBackMayRunTheProgram) {
    Lent output(10), input(20), inner(5);
    int runs = 0;
    inner.tensor.fill(stream, kNan);
    input.storage.when_given_back = [&] {
        if (runs++ != 0) return;
        scanner->before_write(&output.storage);
        scanner->before_write(&input.storage);
        EXPECT_EQ(scan(inner, 2, {&output}), Taken::Now);
        scanner->flush();
    };
    // The first time it is given back is on the way to the launch, when the storage is held besides: runs no code.
    scan(output, 1, {&input});
    runs = -1;
    scanner->flush();
    EXPECT_EQ(runs, 1);
    EXPECT_FALSE(read(1).range.suspicious);
    const DeviceScanner::Reading reading = read(2);
    ASSERT_TRUE(reading.has_hit);
    EXPECT_EQ(reading.hit.input_count, 1);
    for (const Lent* lent : {&output, &input, &inner}) EXPECT_EQ(lent->storage.held(), 0);
}

TEST_F(DeviceDeferral, AllAreAnsweredWhateverHappens) {
    Lent output(10), input(20);
    scan(output, 0, {});
    scanner->flush();
    read(0);
    scan(output, 1, {&input});
    fake_cuda::fail("cuCtxGetId", CUDA_ERROR_CONTEXT_IS_DESTROYED, 0, 1);
    scanner->flush();
    EXPECT_EQ(why_not(*scanner, 1), text(SkipReason::ContextLost));
    EXPECT_EQ(input.storage.held(), 0);
    scan(output, 2, {&input});
    fake_cuda::fail("cuLaunchKernel", CUDA_ERROR_LAUNCH_FAILED, 0, 1);
    scanner->flush();
    EXPECT_EQ(why_not(*scanner, 2), text(SkipReason::EngineOff));
    EXPECT_EQ(input.storage.held(), 0);
    scanner = make_cuda_scanner();
    scan(output, 3, {&input});
    scanner->close();
    EXPECT_EQ(why_not(*scanner, 3), text(SkipReason::Closed));
    EXPECT_EQ(input.storage.held(), 1) << "the program's code is not run any more";
}

TEST_F(DeviceDeferral, ManyThreadsWriteWhatOthersHold) {
    constexpr int kThreads = 4;
    constexpr uint64_t kOps = 300;
    std::atomic<uint64_t> next{1};
    Lent shared(50), first(8);
    shared.tensor.fill(stream, kOne);
    scan(first, 0, {});
    scanner->flush();
    std::vector<std::atomic<int>> bad(kThreads * kOps + 1);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
            Lent own[6] = {Lent(5), Lent(700), Lent(3), Lent(3), Lent(3000), Lent(1)};
            for (uint64_t i = 0; i < kOps; ++i) {
                Lent& output = own[i % 6];
                const uint64_t number = next++;
                scanner->before_write(&output.storage);
                bad[number] = (i + uint64_t(t)) % 7 == 0;
                output.tensor.fill(stream, bad[number] ? kNan : kOne);
                EXPECT_EQ(scan(output, number, {&shared, &own[(i + 1) % 6]}), Taken::Now);
            }
            scanner->flush();
            for (const Lent& lent : own)
                scanner->before_write(&lent.storage);  // another thread may be on its way to the launch
            ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
        });
    }
    for (std::thread& t : threads) t.join();
    for (uint64_t i = 1; i <= kThreads * kOps; ++i) {
        const DeviceScanner::Reading reading = read(i);
        EXPECT_EQ(reading.range.suspicious, bad[i] == 1) << i;
        ASSERT_EQ(reading.has_hit, bad[i] == 1);
        if (reading.has_hit) {
            ASSERT_EQ(reading.hit.input_count, 2);
            EXPECT_EQ(reading.hit.inputs[0].health.elements, 50);
        }
    }
    EXPECT_EQ(shared.storage.held(), 0);
}

}  // namespace
}  // namespace numsan::gpu
