// Scans that a graph captures: they look again at each replay, and say which replay it was.
#include <atomic>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "cuda/kernel/scan_policy.h"
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

TEST_F(Capture, ReplaysLookAtLargeTensorsAgain) {
    CudaScanner scanner("libcuda.so.1", kFewBytes);
    ASSERT_TRUE(scanner.prepare({context, stream}));
    GpuTensor large(kFewBytes / 4 + 1);
    large.fill(stream, kOne);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    begin();
    scan(scanner, large, 10, stream);
    const CUgraphExec exec = end();
    ASSERT_NE(exec, nullptr);
    EXPECT_EQ(scanner.counters().launches, 2u);
    for (uint64_t replay = 1; replay <= 4; ++replay) {
        large.set(stream, 42, replay % 2 == 0 ? kNan : kOne);
        ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
        const std::vector<Found> found = finish(scanner);
        ASSERT_EQ(found.size(), replay % 2 == 0 ? 1u : 0u) << replay;
        for (const Found& one : found) {
            EXPECT_EQ(one.replay, replay);
            EXPECT_EQ(one.health.first_bad, 42);
            EXPECT_EQ(one.health.finite, kFewBytes / 4);
        }
    }
    cuGraphExecDestroy(exec);
}

/// Results of three ops; a loss, which is looked at each time, and behind it the gate to what led to it.
class Turns : public Capture {
  protected:
    void capture(CudaScanner& scanner, uint32_t share) {
        ASSERT_TRUE(scanner.prepare({context, stream}));
        for (std::optional<GpuTensor>* tensor : {&first, &second}) tensor->emplace(100);
        loss.emplace(1);
        for (std::optional<GpuTensor>* tensor : {&first, &second, &loss}) (*tensor)->fill(stream, kOne);
        ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
        begin();
        std::vector<ScanRequest> ops{request_of(*first, 10, stream), request_of(*second, 11, stream),
                                     request_of(*loss, 12, stream)};
        for (ScanRequest& op : ops) {
            op.replays = {share, 0};
            op.takes_turns = true;
            scanner.scan(op);
        }
        ASSERT_EQ(cuLaunchHostFunc(
                      stream, [](void* go) { static_cast<std::atomic<bool>*>(go)->wait(false); }, &goes),
                  CUDA_SUCCESS);
        ScanRequest each_time = request_of(*loss, 13, stream);
        each_time.replays = {share, 0};
        each_time.raises_gate = true;
        scanner.scan(each_time);
        ops.pop_back();
        scanner.scan_behind_gate(ops.data(), static_cast<int>(ops.size()));
        exec = end();
        ASSERT_NE(exec, nullptr);
    }
    void TearDown() override {
        cuGraphExecDestroy(exec);
        Capture::TearDown();
    }
    std::vector<uint64_t> replay(CudaScanner& scanner) {
        EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
        std::vector<uint64_t> numbers;
        ++replays;
        for (const Found& found : finish(scanner)) {
            EXPECT_EQ(found.replay, replays);
            numbers.push_back(found.sequence);
        }
        return numbers;
    }

    std::optional<GpuTensor> first, second, loss;
    CUgraphExec exec = nullptr;
    std::atomic<bool> goes{true};  ///< else a replay stops before it looks at the loss
    uint64_t replays = 0;
};

TEST_F(Turns, ABadLossShowsWhatLedToIt) {
    using Numbers = std::vector<uint64_t>;
    CudaScanner scanner;
    capture(scanner, 1);  // of 65,536: after the first replay there is no time for any
    EXPECT_EQ(replay(scanner), Numbers{});
    first->set(stream, 7, kNan);
    EXPECT_EQ(replay(scanner), Numbers{10}) << "the first launch hears of it late";
    first->set(stream, 7, kOne);
    second->set(stream, 7, kNan);
    EXPECT_EQ(replay(scanner), Numbers{}) << "it has no turn";
    loss->fill(stream, kNan);
    EXPECT_EQ(replay(scanner), (Numbers{11, 13})) << "as the ops were, though it was looked at after the loss";
    EXPECT_EQ(replay(scanner), (Numbers{11, 12, 13})) << "all have a turn";
    EXPECT_EQ(replay(scanner), (Numbers{11, 13})) << "it stays bad";
    second->set(stream, 7, kOne);
    loss->fill(stream, kOne);
    EXPECT_EQ(replay(scanner), Numbers{});
    EXPECT_FALSE(scanner.counters().incomplete());
}

TEST_F(Turns, WithoutAShareAllIsLookedAtEachTime) {
    CudaScanner scanner;
    capture(scanner, 0);
    second->set(stream, 7, kNan);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(replay(scanner), std::vector<uint64_t>{11});
}

TEST_F(Turns, HitsOfAReplayThatIsNotOverWait) {
    CudaScanner scanner;
    capture(scanner, 1);
    first->set(stream, 7, kNan);
    loss->fill(stream, kNan);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    goes = false;
    ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
    for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE(poll(scanner).empty());
        std::this_thread::yield();
    }
    goes = true;
    goes.notify_all();
    EXPECT_EQ(finish(scanner).size(), 3u);
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
    EXPECT_STREQ(scanner.reason(),
                 "the first work that was seen there was captured into a graph, and nothing can be prepared meanwhile: "
                 "run an operator before the capture");
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

/// Captures and graphs until there is no scratch left, were it not given back.
class ManyGraphs : public Capture {
  protected:
    void capture_all(CudaScanner& scanner, const GpuTensor& tensor, bool keep) {
        ASSERT_TRUE(scanner.prepare({context, stream}));
        for (uint64_t i = 0; i < kLanes; ++i) {
            begin();
            scan(scanner, tensor, i, stream);
            const CUgraphExec exec = end();
            if (keep) {
                kept.push_back(exec);
            } else {
                cuGraphExecDestroy(exec);
            }
        }
    }
    void TearDown() override {
        for (CUgraphExec exec : kept) cuGraphExecDestroy(exec);
        Capture::TearDown();
    }
    std::vector<CUgraphExec> kept;
};

TEST_F(ManyGraphs, ThoseThatAreGoneGiveTheirScratchBack) {
    CudaScanner scanner;
    GpuTensor tensor(4), other(4);
    capture_all(scanner, tensor, false);
    EXPECT_EQ(scanner.counters().captured, kLanes);
    EXPECT_FALSE(scanner.counters().incomplete());
    begin();
    scan(scanner, tensor, 10'000, stream);
    scan(scanner, other, 10'001, stream);
    kept.push_back(end());
    tensor.fill(stream, kOne);
    other.fill(stream, kNan);
    for (int replay = 0; replay < 2; ++replay) {
        ASSERT_EQ(cuGraphLaunch(kept[0], stream), CUDA_SUCCESS);
        const std::vector<Found> found = finish(scanner);
        ASSERT_EQ(found.size(), 1u);
        EXPECT_EQ(found[0].sequence, 10'001u);
    }
}

TEST_F(ManyGraphs, ALaunchOnItsWayKeepsTheScratch) {
    CudaScanner scanner;
    ASSERT_TRUE(scanner.prepare({context, stream}));
    GpuTensor tensor(4);
    tensor.fill(stream, kNan);
    begin();
    scan(scanner, tensor, 1, stream);
    const CUgraphExec first = end();
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    fake_cuda::hold(true);
    ASSERT_EQ(cuGraphLaunch(first, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphExecDestroy(first), CUDA_SUCCESS);
    begin();
    scan(scanner, tensor, 2, stream);
    const CUgraphExec second = end();
    fake_cuda::hold(false);
    std::vector<Found> found = finish(scanner);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].sequence, 1u);
    EXPECT_EQ(found[0].replay, 1u);
    ASSERT_EQ(cuGraphLaunch(second, stream), CUDA_SUCCESS);
    found = finish(scanner);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].sequence, 2u);
    EXPECT_EQ(found[0].replay, 1u) << "it has scratch of its own";
    cuGraphExecDestroy(second);
}

TEST_F(ManyGraphs, WhatIsReadLateOfOneThatIsGoneIsStillTold) {
    CudaScanner scanner;
    ASSERT_TRUE(scanner.prepare({context, stream}));
    GpuTensor tensor(4);
    tensor.fill(stream, kNan);
    begin();
    scan(scanner, tensor, 7, stream);
    const CUgraphExec first = end();
    ASSERT_EQ(cuGraphLaunch(first, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    cuGraphExecDestroy(first);
    begin();
    scan(scanner, tensor, 8, stream);
    const std::vector<Found> found = poll(scanner);  // the lane is another capture's, which has scanned nothing yet
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].sequence, 7u);
    cuGraphExecDestroy(end());
}

TEST_F(ManyGraphs, ACaptureThatIsGivenUpGivesItsScratchBack) {
    CudaScanner scanner;
    ASSERT_TRUE(scanner.prepare({context, stream}));
    GpuTensor tensor(4);
    for (uint64_t i = 0; i < kLanes; ++i) {
        begin();
        scan(scanner, tensor, i, stream);
        EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        CUgraph graph;
        EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    EXPECT_EQ(scanner.counters().captured, kLanes);
    EXPECT_EQ(skipped(scanner, SkipReason::NoLane), 0u);
}

TEST_F(ManyGraphs, TheScannerMayGoFirst) {
    GpuTensor tensor(4);
    {
        CudaScanner scanner;
        ASSERT_TRUE(scanner.prepare({context, stream}));
        begin();
        scan(scanner, tensor, 1, stream);
        kept.push_back(end());
    }
}

struct NoEnd {
    const char* call;
    bool hidden;
};
void PrintTo(const NoEnd& c, std::ostream* out) { *out << c.call << (c.hidden ? " hidden" : " fails"); }

/// A driver that does not tell when a graph is gone.
class GraphsForGood : public ManyGraphs, public testing::WithParamInterface<NoEnd> {};

TEST_P(GraphsForGood, LeaveRoomForStreams) {
    if (GetParam().hidden) {
        fake_cuda::hide(GetParam().call);
    } else {
        fake_cuda::fail(GetParam().call, CUDA_ERROR_NOT_SUPPORTED);
    }
    CudaScanner scanner;
    GpuTensor tensor(4);
    capture_all(scanner, tensor, false);
    EXPECT_EQ(scanner.counters().captured, kLanes - kStreamLanes);
    EXPECT_EQ(skipped(scanner, SkipReason::NoLane), kStreamLanes);
    EXPECT_STREQ(scanner.reason(),
                 "there are more streams and graphs than there is scratch for: let go of graphs that are over");
}

INSTANTIATE_TEST_SUITE_P(Calls, GraphsForGood,
                         testing::Values(NoEnd{"cuUserObjectCreate", true}, NoEnd{"cuUserObjectCreate", false},
                                         NoEnd{"cuGraphRetainUserObject", false}),
                         [](const auto& instance) {
                             return std::string(instance.param.call) + (instance.param.hidden ? "Hidden" : "Fails");
                         });

TEST_F(ManyGraphs, LeaveRoomForStreams) {
    CudaScanner scanner;
    GpuTensor tensor(4);
    capture_all(scanner, tensor, true);
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
