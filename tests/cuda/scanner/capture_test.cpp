// Scans that a graph captures: they look again at each replay, and say which replay it was.
#include <thread>

#include "cuda/scan_policy.h"
#include "tests/cuda/scanner/fake_gpu.h"

namespace numsan::gpu {
namespace {

class Capture : public ScannerTest {
  protected:
    void begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
        ASSERT_EQ(cuStreamBeginCapture(stream, mode), CUDA_SUCCESS);
    }
    CUgraphExec end() {
        CUgraph graph = nullptr;
        CUgraphExec exec = nullptr;
        EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
        if (graph == nullptr) return nullptr;
        EXPECT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
        cuGraphDestroy(graph);
        return exec;
    }
};

TEST_F(Capture, OnlyTheSecondReplayIsBad) {
    CudaScanner scanner;
    ASSERT_TRUE(scanner.prepare({context, stream}));
    GpuTensor source(100), first(100), second(100);
    source.fill(stream, kOne);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    Storage storage;
    begin();
    ASSERT_EQ(cuMemcpyDtoDAsync(first.address(), source.address(), 400, stream), CUDA_SUCCESS);
    scan(scanner, first, 10, stream);
    ASSERT_EQ(cuMemcpyDtoDAsync(second.address(), first.address(), 400, stream), CUDA_SUCCESS);
    scan_later(scanner, second, 11, stream, storage);
    scanner.flush({context, stream});
    const CUgraphExec exec = end();
    ASSERT_NE(exec, nullptr);
    EXPECT_EQ(scanner.counters().captured, 2u);
    EXPECT_EQ(scanner.counters().scanned, 0u);
    for (uint64_t replay = 1; replay <= 3; ++replay) {
        source.set(stream, 42, replay == 2 ? kNan : kOne);
        ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
        const std::vector<Found> found = finish(scanner);
        ASSERT_EQ(found.size(), replay == 2 ? 2u : 0u) << replay;
        for (size_t i = 0; i < found.size(); ++i) {
            EXPECT_EQ(found[i].replay, 2u);
            EXPECT_EQ(found[i].health.first_bad, 42);
            EXPECT_EQ(found[i].sequence, 10 + i) << "as it was captured";
        }
    }
    EXPECT_FALSE(scanner.counters().incomplete());
    EXPECT_FALSE(scanner.first_offender()) << "replays have a count of their own";
    cuGraphExecDestroy(exec);
}

TEST_F(Capture, AFirstUseIsPostponed) {
    CudaScanner scanner;
    GpuTensor tensor(10);
    begin();
    scan(scanner, tensor, 1, stream);
    EXPECT_EQ(skipped(scanner, SkipReason::FirstUseInCapture), 1u);
    const CUgraphExec exec = end();
    ASSERT_NE(exec, nullptr) << "the capture is as valid as without numsan";
    cuGraphExecDestroy(exec);
    tensor.fill(stream, kNan);
    scan(scanner, tensor, 2, stream);
    EXPECT_EQ(finish(scanner).size(), 1u);
    EXPECT_STREQ(scanner.reason(), "");
}

TEST_F(Capture, AnotherThreadsGlobalCaptureSurvivesAFirstUse) {
    CudaScanner scanner;
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    std::thread([&] {
        ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
        CUstream other;
        ASSERT_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        EXPECT_TRUE(scanner.prepare({context, other})) << scanner.reason();
        EXPECT_EQ(cuStreamQuery(other), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) << "the mode is as before";
    }).join();
    CUgraph graph;
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) << "by the query, not by us";
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    CudaScanner second;
    std::thread([&] {
        ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
        EXPECT_TRUE(second.prepare({context, nullptr})) << second.reason();
    }).join();
    cuGraphExecDestroy(end());
}

TEST_F(Capture, PendingScansOfBeforeAreNotCaptured) {
    CudaScanner scanner;
    GpuTensor before(10), inside(10);
    before.fill(stream, kNan);
    Storage one, two;
    scan_later(scanner, before, 1, stream, one);
    begin();
    scan_later(scanner, inside, 2, stream, two);
    scanner.flush({context, stream});
    EXPECT_EQ(skipped(scanner, SkipReason::CaptureChanged), 1u) << "the caller did not flush before the capture";
    EXPECT_EQ(scanner.counters().captured, 1u);
    const CUgraphExec exec = end();
    ASSERT_NE(exec, nullptr);
    cuGraphExecDestroy(exec);
    EXPECT_EQ(one.held(), 0);
    EXPECT_EQ(two.held(), 0);
}

TEST_F(Capture, ManyCapturesLeaveRoomForStreams) {
    CudaScanner scanner;
    ASSERT_TRUE(scanner.prepare({context, stream}));
    GpuTensor tensor(4);
    for (uint64_t i = 0; i < kLanes; ++i) {
        begin();
        scan(scanner, tensor, i, stream);
        cuGraphExecDestroy(end());
    }
    EXPECT_EQ(scanner.counters().captured, kLanes - kStreamLanes);
    EXPECT_EQ(skipped(scanner, SkipReason::NoLane), kStreamLanes);
    EXPECT_EQ(scanner.outcome(kLanes - 1).answer, DeviceScanner::Answer::NotRead);
    tensor.fill(stream, kNan);
    scan(scanner, tensor, kLanes, stream);
    EXPECT_EQ(finish(scanner).size(), 1u);
}

TEST_F(Capture, TheLegacyStreamIsLeftAloneMeanwhile) {
    CudaScanner scanner;
    CUstream blocking;
    ASSERT_EQ(cuStreamCreate(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
    ASSERT_TRUE(scanner.prepare({context, stream}));
    GpuTensor tensor(10);
    stream = blocking;
    begin();
    scan(scanner, tensor, 1, nullptr);
    EXPECT_EQ(skipped(scanner, SkipReason::CaptureForbids), 1u);
    const CUgraphExec exec = end();
    EXPECT_NE(exec, nullptr);
    cuGraphExecDestroy(exec);
}

}  // namespace
}  // namespace numsan::gpu
