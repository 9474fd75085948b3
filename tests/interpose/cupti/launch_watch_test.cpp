// The subscriber on the fake CUPTI, whose driver calls functions of this program as kernels.
#include "interpose/cupti/launch_watch.h"

#include <cuda.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "tests/fakes/cuda/control.h"

#define KERNEL(name) extern "C" __attribute__((visibility("default"))) void name(void*)
KERNEL(softmax) {}
KERNEL(_ZN2at6native6gatherEPf) {}
KERNEL(numsan_scan_small) {}
KERNEL(numsan_scan_large) {}

namespace numsan {
namespace {

class LaunchWatchTest : public testing::Test {
  protected:
    void SetUp() override {
        fake_cuda::reset();
        ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
        CUcontext context;
        ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
        ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
        ASSERT_EQ(cuModuleLoadData(&module, fake_cuda::kHostImage), CUDA_SUCCESS);
        watch.log_launches();
        ASSERT_TRUE(watch.start()) << watch.why();
    }
    void TearDown() override {
        watch.yield(true);
        fake_cuda::reset();
    }
    void launch(const char* kernel, unsigned blocks = 1) {
        CUfunction function;
        ASSERT_EQ(cuModuleGetFunction(&function, module, kernel), CUDA_SUCCESS);
        void* nothing = nullptr;
        void* parameters[] = {&nothing};
        ASSERT_EQ(cuLaunchKernel(function, blocks, 2, 1, 32, 4, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
    }
    void launch_configured(const char* kernel, CUstream stream) {
        CUfunction function;
        ASSERT_EQ(cuModuleGetFunction(&function, module, kernel), CUDA_SUCCESS);
        void* nothing = nullptr;
        void* parameters[] = {&nothing};
        const CUlaunchConfig config{6, 1, 1, 256, 1, 1, 0, stream, nullptr, 0};
        ASSERT_EQ(cuLaunchKernelEx(&config, function, parameters, nullptr), CUDA_SUCCESS);
    }
    using Launches = std::map<std::string, int64_t>;

    CUmodule module = nullptr;
    LaunchWatch watch;
};

TEST_F(LaunchWatchTest, OwnKernelsAreNotCounted) {
    for (const char* kernel : {"softmax", "numsan_scan_small", "softmax", "numsan_scan_large"}) launch(kernel);
    EXPECT_EQ(watch.launches().launches(), (Launches{{"softmax", 2}}));
    EXPECT_FALSE(watch.has_gaps());
}

TEST_F(LaunchWatchTest, ItGivesWayAndComesBackUnlessForGood) {
    launch("softmax");
    watch.yield(false);
    EXPECT_TRUE(!watch.watching() && watch.has_gaps());
    launch("softmax");
    watch.take_again();
    EXPECT_TRUE(watch.watching());
    launch("softmax");
    watch.yield(true);
    watch.take_again();
    EXPECT_FALSE(watch.watching());
    EXPECT_EQ(watch.launches().total(), 2);
}

TEST_F(LaunchWatchTest, TheSecondIsToldWhoWasFirst) {
    LaunchWatch second;
    EXPECT_FALSE(second.start());
    EXPECT_EQ(second.why(), "CUPTI is taken by CUPTI for numsan");
    second.take_again();  // it never had it
    EXPECT_FALSE(second.watching());
}

TEST_F(LaunchWatchTest, LaunchesAreKnownByWhatTheDriverWasAskedFor) {
    launch("softmax");
    const uint64_t first = watch.next_launch();
    launch("numsan_scan_small");
    launch("_ZN2at6native6gatherEPf", 3);
    CUstream stream;
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    launch_configured("softmax", stream);
    const std::vector<LoggedLaunch> launches = watch.launches_of(watch.since(first));
    ASSERT_EQ(launches.size(), 2u);
    EXPECT_EQ(watch.kernel_of(launches[0]), "at::native::gather(float*)");
    EXPECT_STREQ(launches[0].call, "cuLaunchKernel");
    EXPECT_EQ(std::to_array(launches[0].grid), (std::array<uint32_t, 3>{3, 2, 1}));
    EXPECT_EQ(std::to_array(launches[0].block), (std::array<uint32_t, 3>{32, 4, 1}));
    EXPECT_EQ(launches[0].stream, 0u);
    EXPECT_EQ(watch.kernel_of(launches[1]), "softmax");
    EXPECT_STREQ(launches[1].call, "cuLaunchKernelEx");
    EXPECT_EQ(std::to_array(launches[1].grid), (std::array<uint32_t, 3>{6, 1, 1}));
    EXPECT_EQ(std::to_array(launches[1].block), (std::array<uint32_t, 3>{256, 1, 1}));
    EXPECT_EQ(launches[1].stream, reinterpret_cast<uint64_t>(stream));
    EXPECT_GT(launches[1].correlation_id, launches[0].correlation_id);
}

TEST_F(LaunchWatchTest, WhatIsKeptIsKnownForGood) {
    const uint64_t first = watch.next_launch();
    launch("softmax");
    const LaunchSpan kept = watch.since(first);
    watch.keep(kept);
    const uint64_t second = watch.next_launch();
    launch("softmax");
    const LaunchSpan gone = watch.since(second);
    for (size_t i = 0; i < LaunchLog::kSlots; ++i) launch("softmax");
    EXPECT_EQ(watch.launches_of(kept).size(), 1u);
    EXPECT_TRUE(watch.launches_of(gone).empty());
}

TEST_F(LaunchWatchTest, AForkedChildDoesNothing) {
    launch("softmax");
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        watch.after_fork_in_child();
        watch.yield(false);
        watch.take_again();
        _exit(watch.launches().total() == 0 && !watch.watching() && !watch.start() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    launch("softmax");
    EXPECT_EQ(watch.launches().total(), 2);
}

}  // namespace
}  // namespace numsan
