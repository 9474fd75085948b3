// Whatever becomes of the driver, an output that was taken is answered.
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "tests/cuda/scanner/device_fixture.h"

namespace numsan::gpu {
namespace {

class DeviceBadDays : public DeviceScannerTest {
  protected:
    void SetUp() override {
        ScannerTest::SetUp();
        scanner = make_cuda_scanner();
        tensor = std::make_unique<GpuTensor>(5);
        tensor->fill(stream, kNan);
    }
    /// One scan that goes well.
    void warm_up() {
        ASSERT_EQ(scan(*scanner, *tensor, 0, stream), Taken::Now) << scanner->reason();
        synchronize(*scanner);
        ASSERT_EQ(why_not(*scanner, 0), "read");
    }

    std::unique_ptr<DeviceScanner> scanner;
    std::unique_ptr<GpuTensor> tensor;
};

TEST_F(DeviceBadDays, NoDriver) {
    scanner = make_cuda_scanner("libnumsan-has-no-such-driver.so.1");
    EXPECT_EQ(scan(*scanner, *tensor, 1, stream), Taken::No);
    EXPECT_NE(std::string(scanner->reason()).find("no-such-driver"), std::string::npos) << scanner->reason();
    DeviceScanner::Reading reading{};
    EXPECT_EQ(scanner->answer(1, reading), Answer::NotYet);
    scanner->before_write(tensor->view.storage);
    scanner->flush();
    uint64_t sequence;
    DeviceHit hit;
    EXPECT_FALSE(scanner->next_replayed(sequence, hit));
    scanner->close();
}

TEST_F(DeviceBadDays, AContextThatCannotBePrepared) {
    fake_cuda::fail("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY, 0, 1);
    EXPECT_EQ(scan(*scanner, *tensor, 1, stream), Taken::No);
    EXPECT_STREQ(scanner->reason(), "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY");
    EXPECT_EQ(scan(*scanner, *tensor, 2, stream), Taken::No) << "not tried again";
}

TEST_F(DeviceBadDays, APrimaryContextThatIsRefused) {
    fake_cuda::fail("cuDevicePrimaryCtxRetain", CUDA_ERROR_OUT_OF_MEMORY, 0, 1);
    EXPECT_EQ(scan(*scanner, *tensor, 1, stream), Taken::No);
    EXPECT_STREQ(scanner->reason(), "cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY");
    warm_up();
}

TEST_F(DeviceBadDays, ALaunchThatIsRefused) {
    warm_up();
    fake_cuda::fail("cuLaunchKernel", CUDA_ERROR_NOT_PERMITTED, 0, 1);
    EXPECT_EQ(scan(*scanner, *tensor, 1, stream), Taken::Now);
    EXPECT_EQ(why_not(*scanner, 1), text(SkipReason::EngineOff));
    EXPECT_STREQ(scanner->reason(), "cuLaunchKernel: CUDA_ERROR_NOT_PERMITTED");
    EXPECT_EQ(scan(*scanner, *tensor, 2, stream), Taken::No);
}

TEST_F(DeviceBadDays, AFirstUseInsideACapture) {
    ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(scan(*scanner, *tensor, 1, stream), Taken::Now);
    EXPECT_EQ(why_not(*scanner, 1), text(SkipReason::FirstUseInCapture));
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    cuGraphDestroy(graph);
    warm_up();
}

TEST_F(DeviceBadDays, AnInvalidatedCapture) {
    warm_up();
    ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_NE(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(scan(*scanner, *tensor, 1, stream), Taken::Now);
    EXPECT_EQ(why_not(*scanner, 1), text(SkipReason::CaptureForbids));
    CUgraph graph = nullptr;
    EXPECT_NE(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
}

TEST_F(DeviceBadDays, AStreamThatWasDestroyed) {
    warm_up();
    CUstream gone;
    ASSERT_EQ(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    EXPECT_EQ(scan(*scanner, *tensor, 1, gone), Taken::Now);
    ASSERT_EQ(cuStreamDestroy(gone), CUDA_SUCCESS);
    fake_cuda::hold(true);
    EXPECT_EQ(scan(*scanner, *tensor, 2, stream), Taken::Now);
    EXPECT_EQ(scan(*scanner, *tensor, 3, gone), Taken::Now);
    EXPECT_EQ(why_not(*scanner, 3), text(SkipReason::StreamInvalid));
    EXPECT_EQ(why_not(*scanner, 2), "not yet") << "the other streams' go on";
    EXPECT_EQ(scan(*scanner, *tensor, 4, stream), Taken::Now);
    fake_cuda::hold(false);
    synchronize(*scanner);
    for (const uint64_t sequence : {1, 2, 4}) EXPECT_EQ(why_not(*scanner, sequence), "read");
    EXPECT_EQ(fake_cuda::calls("cuModuleLoadData"), 1u) << "the context is the same";
    EXPECT_STREQ(scanner->reason(), "");
}

TEST_F(DeviceBadDays, AStreamOfAnotherContext) {
    warm_up();
    CUcontext other;
    CUstream its_stream;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxPushCurrent(other), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&its_stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxPopCurrent(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(scan(*scanner, *tensor, 1, its_stream), Taken::Now);
    EXPECT_EQ(why_not(*scanner, 1), text(SkipReason::StreamInvalid));
    EXPECT_EQ(scan(*scanner, *tensor, 2, stream), Taken::Now);
    synchronize(*scanner);
    EXPECT_EQ(why_not(*scanner, 2), "read");
    EXPECT_EQ(fake_cuda::calls("cuModuleLoadData"), 1u);
}

TEST_F(DeviceBadDays, AStickyErrorWhileScansAreUnderWay) {
    warm_up();
    scan(*scanner, *tensor, 1, stream);
    synchronize(*scanner);
    fake_cuda::hold(true);
    EXPECT_EQ(scan(*scanner, *tensor, 2, stream), Taken::Now);
    fake_cuda::make_sticky(context, CUDA_ERROR_ILLEGAL_ADDRESS);
    fake_cuda::hold(false);
    EXPECT_EQ(scan(*scanner, *tensor, 3, stream), Taken::No);
    EXPECT_EQ(why_not(*scanner, 2), text(SkipReason::EngineOff)) << "it will never be run";
    EXPECT_EQ(why_not(*scanner, 1), "read") << "what was told before counts";
    EXPECT_NE(std::string(scanner->reason()).find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos);
}

TEST_F(DeviceBadDays, AContextThatIsLostAndTheNextOne) {
    warm_up();
    scan(*scanner, *tensor, 1, stream);
    synchronize(*scanner);
    fake_cuda::hold(true);
    EXPECT_EQ(scan(*scanner, *tensor, 2, stream), Taken::Now);
    std::thread reset([] { EXPECT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS); });
    while (cuStreamQuery(stream) != CUDA_ERROR_CONTEXT_IS_DESTROYED) std::this_thread::yield();
    fake_cuda::hold(false);
    reset.join();
    EXPECT_EQ(scan(*scanner, *tensor, 3, stream), Taken::Now);
    EXPECT_EQ(why_not(*scanner, 3), text(SkipReason::ContextLost));
    EXPECT_EQ(why_not(*scanner, 2), text(SkipReason::ContextLost));
    EXPECT_EQ(why_not(*scanner, 1), "read") << "what was told before counts";
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    GpuTensor next(3);
    next.fill(stream, kOne);
    ASSERT_EQ(scan(*scanner, next, 4, stream), Taken::Now) << scanner->reason();
    synchronize(*scanner);
    EXPECT_EQ(why_not(*scanner, 4), "read");
}

TEST_F(DeviceBadDays, TheChildOfAFork) {
    warm_up();
    scan(*scanner, *tensor, 1, stream);
    synchronize(*scanner);
    const pid_t child = fork();
    if (child == 0) {
        const uint64_t before = fake_cuda::calls(nullptr);
        bool well = scan(*scanner, *tensor, 2, stream) == Taken::No;
        well = well && why_not(*scanner, 1) == text(SkipReason::Forked);
        scanner->before_write(tensor->view.storage);
        scanner->flush();
        scanner->close();
        _exit(well && fake_cuda::calls(nullptr) == before ? 0 : 1);
    }
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(why_not(*scanner, 1), "read") << "the parent goes on";
}

TEST_F(DeviceBadDays, TheEnd) {
    warm_up();
    fake_cuda::hold(true);
    EXPECT_EQ(scan(*scanner, *tensor, 1, stream), Taken::Now);
    scanner->close();
    EXPECT_EQ(scan(*scanner, *tensor, 2, stream), Taken::No);
    DeviceScanner::Reading reading{};
    EXPECT_EQ(scanner->answer(1, reading), Answer::NotYet) << "it is under way";
    fake_cuda::hold(false);
    synchronize(*scanner);
    EXPECT_EQ(scanner->answer(1, reading), Answer::Read);
    EXPECT_TRUE(reading.has_hit);
}

}  // namespace
}  // namespace numsan::gpu
