// The fake driver keeps the driver's promises: order, asynchrony, capture, and what its script says.
#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "tests/fakes/cuda/control.h"

namespace {

class FakeCuda : public testing::Test {
  protected:
    void SetUp() override {
        fake_cuda::reset();
        ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
        ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
        ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    }
    void TearDown() override { fake_cuda::reset(); }

    CUstream make(unsigned flags = CU_STREAM_NON_BLOCKING) {
        CUstream stream = nullptr;
        EXPECT_EQ(cuStreamCreate(&stream, flags), CUDA_SUCCESS);
        return stream;
    }
    /// Appends a number to `log` when the stream gets there. Only for work that is ordered.
    void write(CUstream stream, int number) {
        notes.push_back({&log, number});
        EXPECT_EQ(cuLaunchHostFunc(
                      stream, [](void* p) { static_cast<Note*>(p)->log->push_back(static_cast<Note*>(p)->number); },
                      &notes.back()),
                  CUDA_SUCCESS);
    }

    struct Note {
        std::vector<int>* log;
        int number;
    };
    std::deque<Note> notes;
    std::vector<int> log;
    CUcontext context = nullptr;
};

TEST_F(FakeCuda, HasTheTrueName) { EXPECT_NE(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), nullptr); }

TEST_F(FakeCuda, EventsSayWhenTheirStreamGotThere) {
    const CUstream stream = make();
    CUevent begin = nullptr, end = nullptr;
    ASSERT_EQ(cuEventCreate(&begin, CU_EVENT_DEFAULT), CUDA_SUCCESS);
    ASSERT_EQ(cuEventCreate(&end, CU_EVENT_DEFAULT), CUDA_SUCCESS);
    float milliseconds = -1;
    EXPECT_EQ(cuEventElapsedTime(&milliseconds, begin, end), CUDA_ERROR_INVALID_HANDLE);
    fake_cuda::hold(true);
    EXPECT_EQ(cuEventRecord(begin, stream), CUDA_SUCCESS);
    write(stream, 1);
    EXPECT_EQ(cuEventRecord(end, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuEventElapsedTime(&milliseconds, begin, end), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(cuEventQuery(begin), CUDA_ERROR_NOT_READY);
    fake_cuda::hold(false);
    EXPECT_EQ(cuEventSynchronize(end), CUDA_SUCCESS);
    EXPECT_EQ(cuEventElapsedTime(&milliseconds, begin, end), CUDA_SUCCESS);
    EXPECT_GE(milliseconds, 0);
    EXPECT_EQ(log, std::vector<int>{1});
    EXPECT_EQ(cuEventDestroy(begin), CUDA_SUCCESS);
    EXPECT_EQ(cuEventDestroy(end), CUDA_SUCCESS);
}

TEST_F(FakeCuda, AStreamRunsLaterAndInOrder) {
    const CUstream stream = make();
    fake_cuda::hold(true);
    for (int i = 0; i < 5; ++i) write(stream, i);
    EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    fake_cuda::hold(false);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(log, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST_F(FakeCuda, EventsOrderStreams) {
    const CUstream first = make(), second = make();
    CUevent event;
    ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
    fake_cuda::hold(true);
    write(first, 1);
    ASSERT_EQ(cuEventRecord(event, first), CUDA_SUCCESS);
    EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    ASSERT_EQ(cuStreamWaitEvent(second, event, 0), CUDA_SUCCESS);
    write(second, 2);
    fake_cuda::hold(false);
    ASSERT_EQ(cuStreamSynchronize(second), CUDA_SUCCESS);
    EXPECT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
    EXPECT_EQ(log, (std::vector<int>{1, 2}));
    cuEventDestroy(event);
}

TEST_F(FakeCuda, TheLegacyStreamWaitsForBlockingOnesAndTheyForIt) {
    const CUstream blocking = make(CU_STREAM_DEFAULT);
    fake_cuda::hold(true);
    write(blocking, 1);
    write(nullptr, 2);
    write(blocking, 3);
    fake_cuda::hold(false);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(log, (std::vector<int>{1, 2, 3}));
}

TEST_F(FakeCuda, AGraphRunsWhatWasCapturedEachTime) {
    const CUstream stream = make(), side = make();
    CUevent fork;
    ASSERT_EQ(cuEventCreate(&fork, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    write(stream, 1);
    ASSERT_EQ(cuEventRecord(fork, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWaitEvent(side, fork, 0), CUDA_SUCCESS);
    CUstreamCaptureStatus status;
    ASSERT_EQ(cuStreamIsCapturing(side, &status), CUDA_SUCCESS);
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    write(side, 2);
    CUgraph graph;
    CUgraphExec exec;
    ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    EXPECT_TRUE(log.empty());
    ASSERT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphLaunch(exec, side), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(log, (std::vector<int>{1, 2, 1, 2}));
    cuGraphExecDestroy(exec);
    cuGraphDestroy(graph);
    cuEventDestroy(fork);
}

TEST_F(FakeCuda, AnUnsafeCallSpoilsACapture) {
    const CUstream stream = make();
    ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    ASSERT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    CUdeviceptr memory;
    EXPECT_EQ(cuMemAlloc(&memory, 16), CUDA_SUCCESS);
    ASSERT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc(&memory, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CUgraph graph;
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(FakeCuda, ScriptsAndUnknownEntries) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult found;
    EXPECT_EQ(cuGetProcAddress("cuMemAlloc", &function, 12000, 0, &found), CUDA_SUCCESS);
    EXPECT_EQ(function, reinterpret_cast<void*>(&cuMemAlloc));
    EXPECT_EQ(cuGetProcAddress("cuCtxGetId", &function, 11000, 0, &found), CUDA_SUCCESS);
    EXPECT_EQ(found, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    EXPECT_EQ(cuGetProcAddress("cuNoSuchCall", &function, 13000, 0, &found), CUDA_SUCCESS);
    EXPECT_EQ(found, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    fake_cuda::fail("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY, 1, 1);
    CUdeviceptr memory;
    EXPECT_EQ(cuMemAlloc(&memory, 16), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc(&memory, 16), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(cuMemAlloc(&memory, 16), CUDA_SUCCESS);
    EXPECT_EQ(fake_cuda::calls("cuMemAlloc"), 3u);
    fake_cuda::make_sticky(context, CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuMemAlloc(&memory, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

}  // namespace
