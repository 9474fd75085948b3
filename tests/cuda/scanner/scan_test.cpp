// From a tensor on a stream to a hit in the reader's hands.
#include <atomic>
#include <iterator>
#include <thread>

#include "cuda/kernel/scan_policy.h"
#include "tests/cuda/scanner/fake_gpu.h"

namespace numsan::gpu {
namespace {

using Scan = ScannerTest;

TEST_F(Scan, ABadTensorComesBackThroughTheRing) {
    CudaScanner scanner;
    ASSERT_TRUE(scanner.prepare({context, stream})) << scanner.reason();
    GpuTensor tensor(1000);
    fake_cuda::hold(true);
    tensor.fill(stream, kOne);
    tensor.set(stream, 700, kNan);
    scan(scanner, tensor, 12, stream);
    EXPECT_TRUE(poll(scanner).empty()) << "the stream has not run";
    fake_cuda::hold(false);
    const std::vector<Found> found = finish(scanner);
    ASSERT_EQ(found.size(), 1u) << scanner.reason();
    EXPECT_EQ(found[0].sequence, 12u);
    EXPECT_EQ(found[0].replay, 0u);
    EXPECT_EQ(found[0].health.nan, 1);
    EXPECT_EQ(found[0].health.first_bad, 700);
    EXPECT_EQ(found[0].health.first_bad_bits, kNan);
    EXPECT_EQ(found[0].health.max, 1.0);
    EXPECT_FALSE(scanner.counters().incomplete());
    EXPECT_EQ(scanner.counters().scanned, 1u);
    EXPECT_EQ(scanner.counters().bytes, 4000u);
}

TEST_F(Scan, NothingIsAllocatedLoadedOrAwaitedAfterTheFirstUse) {
    CudaScanner scanner;
    GpuTensor tensor(3 << 20);
    tensor.fill(stream, kOne);
    scan(scanner, tensor, 0, stream);
    const char* const kForbidden[] = {"cuMemAlloc",          "cuMemHostRegister",   "cuModuleLoadData",
                                      "cuModuleGetFunction", "cuStreamSynchronize", "cuCtxSynchronize",
                                      "cuStreamCreate"};
    uint64_t before[std::size(kForbidden)];
    for (size_t i = 0; i < std::size(kForbidden); ++i) before[i] = fake_cuda::calls(kForbidden[i]);
    const uint64_t calls = fake_cuda::calls(nullptr);
    for (uint64_t i = 1; i < 200; ++i) scan(scanner, tensor, i, stream);
    EXPECT_EQ(fake_cuda::calls(nullptr) - calls, 4u * 199)
        << "which context is current, which one that is, whether the stream is captured, the launch";
    for (size_t i = 0; i < std::size(kForbidden); ++i)
        EXPECT_EQ(fake_cuda::calls(kForbidden[i]), before[i]) << kForbidden[i];
    const uint64_t all = fake_cuda::calls(nullptr);
    poll(scanner);
    scanner.counters();
    scanner.close();
    EXPECT_EQ(fake_cuda::calls(nullptr), all) << "the reader and the end call nothing";
}

TEST_F(Scan, InputsAreToldWithTheirOutput) {
    CudaScanner scanner;
    GpuTensor output(10), good(20), bad(30);
    output.fill(stream, kNan);
    good.fill(stream, kOne);
    bad.fill(stream, kNan);
    const TensorView inputs[] = {good.view, bad.view};
    ScanRequest request = request_of(output, 3, stream);
    request.inputs = inputs;
    request.input_count = 2;
    scanner.scan(request);
    scanner.flush_all();
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    int hits = scanner.poll([](const Hit& hit) {
        ASSERT_EQ(hit.count, 3);
        EXPECT_EQ(hit.slots[1].nan, 0);
        EXPECT_EQ(hit.slots[2].nan, 30);
        EXPECT_EQ(hit.slots[2].role, HitRole::Input);
    });
    EXPECT_EQ(hits, 1);
}

TEST_F(Scan, MoreOutputsThanABatchHolds) {
    CudaScanner scanner;
    GpuTensor tensor(5);
    tensor.fill(stream, kNan);
    const std::vector<TensorView> outputs(3 * kBatchOutputs + 1, tensor.view);
    ScanRequest request = request_of(tensor, 100, stream);
    request.outputs = outputs.data();
    request.output_count = static_cast<int>(outputs.size());
    scanner.scan(request);
    const std::vector<Found> found = finish(scanner);
    ASSERT_EQ(found.size(), outputs.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].sequence, 100 + i);
    EXPECT_EQ(scanner.counters().launches, 4u);
}

TEST_F(Scan, ALargeTensorIsLookedAtByALaunchOfItsOwn) {
    CudaScanner scanner("libcuda.so.1", kFewBytes);
    constexpr int64_t kElements = kFewBytes / 4 + 1000;
    GpuTensor output(5), operand(kElements);
    output.fill(stream, kOne);
    operand.fill(stream, kOne);
    ScanRequest request = request_of(output, 1, stream);
    request.inputs = &operand.view;
    request.input_count = 1;
    scanner.scan(request);
    EXPECT_EQ(finish(scanner).size(), 0u);
    EXPECT_EQ(scanner.counters().launches, 2u);
    output.set(stream, 3, kNan);
    operand.set(stream, kElements - 2, kNan);
    operand.set(stream, 7, 0);
    request.sequence = 2;
    scanner.scan(request);
    scanner.flush_all();
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    const int hits = scanner.poll([&](const Hit& hit) {
        ASSERT_EQ(hit.count, 2);
        EXPECT_EQ(hit.sequence, 2u);
        EXPECT_EQ(hit.health.first_bad, 3);
        EXPECT_EQ(hit.slots[1].first_bad, kElements - 2);
        EXPECT_EQ(hit.slots[1].zero, 1);
        EXPECT_EQ(hit.slots[1].finite, kElements - 1);
    });
    EXPECT_EQ(hits, 1);
    EXPECT_EQ(scanner.counters().launches, 4u);
}

TEST_F(Scan, WhatLaunchesCostIsLearnedFromThem) {
    CudaScanner scanner;
    GpuTensor small(256), large(100'000);
    for (GpuTensor* tensor : {&small, &large}) tensor->fill(stream, kOne);
    const double before = scanner.cost(0).bytes_per_nanosecond();
    uint64_t sequence = 1;
    for (int turn = 0; turn < 30; ++turn) {
        for (int i = 0; i < 8; ++i) scan(scanner, i % 2 != 0 ? large : small, sequence++, stream);
        EXPECT_TRUE(finish(scanner).empty());
    }
    EXPECT_LT(scanner.cost(0).bytes_per_nanosecond(), before / 4) << "no host reads as fast as a device";
}

TEST_F(Scan, ReadingWaitsForTheStream) {
    CudaScanner scanner;
    GpuTensor tensor(4);
    fake_cuda::hold(true);
    tensor.fill(stream, kNan);
    float read[4] = {};
    std::atomic<bool> done{false};
    bool taken = false;
    std::thread reader([&] {
        taken = scanner.read({context, stream, 0}, tensor.view.data, sizeof read, read);
        done = true;
    });
    while (fake_cuda::calls("cuStreamSynchronize") == 0) std::this_thread::yield();
    EXPECT_FALSE(done);
    fake_cuda::hold(false);
    reader.join();
    EXPECT_TRUE(taken);
    for (const float value : read) EXPECT_NE(value, value);
}

TEST_F(Scan, ReadingLeavesACaptureAloneAndSaysWhenTheDriverDoesNot) {
    CudaScanner scanner;
    GpuTensor tensor(4);
    float read[4] = {};
    ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_FALSE(scanner.read({context, stream, 0}, tensor.view.data, sizeof read, read));
    CUgraph graph;
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS) << "the capture is still whole";
    cuGraphDestroy(graph);
    fake_cuda::fail("cuMemcpyDtoHAsync", CUDA_ERROR_INVALID_VALUE);
    EXPECT_FALSE(scanner.read({context, stream, 0}, tensor.view.data, sizeof read, read));
    EXPECT_STREQ(scanner.reason(), "") << "scans go on";
}

TEST_F(Scan, SequencesAreWiderThan32Bits) {
    CudaScanner scanner;
    GpuTensor tensor(5);
    tensor.fill(stream, kNan);
    const uint64_t edge = uint64_t(7) << 32;
    for (uint64_t sequence : {edge - 1, edge, edge + 1}) scan(scanner, tensor, sequence, stream);
    const std::vector<Found> found = finish(scanner);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[0].sequence, edge - 1);
    EXPECT_EQ(found[2].sequence, edge + 1);
    for (uint64_t i = 2; i < 40; ++i) scan(scanner, tensor, edge + i, stream);
    finish(scanner);
    ASSERT_TRUE(scanner.first_offender());
}

TEST_F(Scan, AFullRingIsCountedAndTheFirstOffenderIsKnown) {
    CudaScanner scanner;
    GpuTensor tensor(1);
    tensor.fill(stream, kNan);
    for (uint64_t i = 0; i < kRingCapacity + 10; ++i) scan(scanner, tensor, 50 + i, stream);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(poll(scanner).size(), kRingCapacity);
    EXPECT_EQ(scanner.counters().dropped, 10u);
    EXPECT_TRUE(scanner.counters().incomplete());
    EXPECT_EQ(scanner.first_offender()->sequence, 50u);
}

TEST_F(Scan, BehindTheGateOnlyWhenALossWasBad) {
    CudaScanner scanner;
    GpuTensor loss(1), activation(100);
    loss.fill(stream, kOne);
    activation.fill(stream, kNan);
    ScanRequest gated = request_of(activation, 1, stream), raising = request_of(loss, 2, stream);
    raising.raises_gate = true;
    scanner.scan(raising);
    scanner.scan_behind_gate(&gated, 1);
    EXPECT_TRUE(finish(scanner).empty()) << "closed";
    loss.fill(stream, kNan);
    scanner.scan(raising);
    scanner.scan_behind_gate(&gated, 1);
    EXPECT_EQ(finish(scanner).size(), 2u) << "open";
    loss.fill(stream, kOne);
    scanner.scan(raising);
    scanner.scan_behind_gate(&gated, 1);
    EXPECT_TRUE(finish(scanner).empty()) << "closed again";
}

TEST_F(Scan, WhatIsToldIsLookedAtCloselyEvenIfItIsClean) {
    CudaScanner scanner;
    GpuTensor loss(1), operand(40000);
    loss.fill(stream, kNan);
    operand.fill(stream, 0xc0000000);  // -2
    operand.set(stream, 39999, 0);
    ScanRequest raising = request_of(loss, 1, stream), exact = request_of(operand, 2, stream);
    raising.raises_gate = exact.exact = true;
    scanner.scan(raising);
    scanner.scan_behind_gate(&exact, 1);
    const std::vector<Found> found = finish(scanner);
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[1].health.zero, 1);
    EXPECT_EQ(found[1].health.min, -2.0);
    EXPECT_EQ(found[1].health.max, 0.0);
    const CudaScanner::Outcome outcome = scanner.outcome(2);
    EXPECT_EQ(outcome.answer, DeviceScanner::Answer::Read);
    EXPECT_TRUE(outcome.has_hit);
    EXPECT_FALSE(outcome.range.suspicious);
    EXPECT_EQ(scanner.first_offender()->sequence, 1u);
}

TEST_F(Scan, EachStreamHasAGateOfItsOwn) {
    CudaScanner scanner;
    CUstream other = nullptr;
    ASSERT_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    GpuTensor bad(1), fine(1), activation(100);
    bad.fill(stream, kNan);
    fine.fill(other, kOne);
    activation.fill(stream, kNan);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    ScanRequest here = request_of(bad, 1, stream), there = request_of(fine, 2, other);
    ScanRequest behind_here = request_of(activation, 3, stream), behind_there = request_of(activation, 4, other);
    here.raises_gate = there.raises_gate = true;
    scanner.scan(here);
    scanner.scan(there);
    scanner.scan_behind_gate(&behind_there, 1);
    EXPECT_EQ(finish(scanner).size(), 1u) << "closed on the other stream";
    scanner.scan_behind_gate(&behind_here, 1);
    const std::vector<Found> found = finish(scanner);
    ASSERT_EQ(found.size(), 1u) << "open here, though the other stream has closed its own";
    EXPECT_EQ(found[0].sequence, 3u);
    ASSERT_EQ(cuStreamDestroy(other), CUDA_SUCCESS);
}

}  // namespace
}  // namespace numsan::gpu
