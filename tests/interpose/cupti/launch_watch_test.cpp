// The subscriber on the fake CUPTI, whose driver calls functions of this program as kernels.
#include "interpose/cupti/launch_watch.h"

#include <cuda.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

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
        watch.use(heard);
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

    /// Launches a kernel itself, where a test asks for it.
    struct Heard final : DriverListener {
        void before_launch(const WatchedLaunch& launch) noexcept override { add("before", launch); }
        void after_launch(const WatchedLaunch& launch) noexcept override {
            add("after", launch);
            if (again) again();
        }
        void after_other_launch() noexcept override { all.push_back("other"); }
        void memory_call(const cupti::MemoryCall& call, const char* name) noexcept override {
            constexpr const char* kWhat[] = {"allocate", "free", "copy", "set", "other"};
            all.push_back(std::string(kWhat[static_cast<int>(call.what)]) + " " + std::to_string(call.bytes) + " " +
                          name);
            last = call;
        }
        void after_gap() noexcept override { all.push_back("gap"); }
        void add(const char* when, const WatchedLaunch& launch) {
            all.push_back(std::string(when) + " " + launch.symbol + (launch.arguments != nullptr ? "" : ", packed"));
            spans.push_back(launch.launches);
        }
        std::vector<std::string> all;
        std::vector<LaunchSpan> spans;
        cupti::MemoryCall last{};
        std::function<void()> again;
    };
    using All = std::vector<std::string>;
    Heard heard;

    CUmodule module = nullptr;
    LaunchWatch watch;
};

TEST_F(LaunchWatchTest, OwnKernelsAreNotCounted) {
    for (const char* kernel : {"softmax", "numsan_scan_small", "softmax", "numsan_scan_large"}) launch(kernel);
    EXPECT_EQ(watch.launches().launches(), (Launches{{"softmax", 2}}));
    EXPECT_FALSE(watch.has_gaps());
}

TEST_F(LaunchWatchTest, AListenerHearsOfLaunchesAndOfMemory) {
    CUdeviceptr memory = 0, other = 0;
    char host[64];
    ASSERT_EQ(cuMemAlloc(&memory, 64), CUDA_SUCCESS);
    EXPECT_EQ(heard.last.address, memory);
    ASSERT_EQ(cuMemAlloc(&other, 64), CUDA_SUCCESS);
    launch("softmax");
    ASSERT_EQ(heard.spans.size(), 2u);
    EXPECT_EQ(watch.launches_of(heard.spans[1]).size(), 1u) << "itself";
    CUstream stream;
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD32Async(memory, 0, 4, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyDtoDAsync(other, memory, 16, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyDtoHAsync(host, other, 32, stream), CUDA_SUCCESS);
    EXPECT_EQ(heard.last.from, other);
    EXPECT_EQ(heard.last.address, reinterpret_cast<uint64_t>(host));
    EXPECT_EQ(heard.last.stream, stream);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    ASSERT_EQ(cuMemFree(memory), CUDA_SUCCESS);
    EXPECT_NE(cuMemsetD32Async(memory + 1, 0, 1, stream), CUDA_SUCCESS) << "what fails is not heard of";
    EXPECT_EQ(heard.all, (All{"allocate 64 cuMemAlloc_v2", "allocate 64 cuMemAlloc_v2", "before softmax",
                              "after softmax", "set 0 cuMemsetD32Async", "copy 16 cuMemcpyDtoDAsync_v2",
                              "copy 32 cuMemcpyDtoHAsync_v2", "free 0 cuMemFree_v2"}));
}

TEST_F(LaunchWatchTest, WhatAListenerCallsItselfIsNotWatched) {
    heard.again = [this] {
        CUdeviceptr memory = 0;
        ASSERT_EQ(cuMemAlloc(&memory, 64), CUDA_SUCCESS);
        launch("_ZN2at6native6gatherEPf");
    };
    launch("softmax");
    EXPECT_EQ(heard.all, (All{"before softmax", "after softmax"}));
    EXPECT_EQ(watch.launches().launches(), (Launches{{"softmax", 1}}));
}

TEST_F(LaunchWatchTest, AListenerIsToldOfAGapAndMayEnd) {
    watch.yield(false);
    launch("softmax");
    watch.take_again();
    launch("softmax");
    watch.end_listening();
    launch("softmax");
    EXPECT_EQ(heard.all, (All{"gap", "gap", "before softmax", "after softmax"})) << "as it begins, and as it ends";
}

TEST(MemoryCalls, ThreadsHaveDefaultStreamsOfTheirOwn) {
    const cupti::CopyInStreamParams copy{{1, 2, 3}, nullptr};
    EXPECT_EQ(cupti::memory_call(422, &copy)->stream, cupti::kThreadStream) << "cuMemcpyDtoHAsync_v2_ptsz";
    EXPECT_EQ(cupti::memory_call(279, &copy)->stream, nullptr);
    uint64_t address = 0x1000;
    const size_t pitch = 512;
    const cupti::AllocateRowsParams rows{&address, &pitch, 500, 4};
    EXPECT_EQ(cupti::memory_call(244, &rows)->bytes, 2048);
    EXPECT_EQ(cupti::memory_call(243, nullptr)->what, cupti::MemoryCall::What::Other);
    EXPECT_EQ(cupti::memory_call(288, &rows)->what, cupti::MemoryCall::What::Other) << "cuMemcpy2DUnaligned_v2";
    EXPECT_FALSE(cupti::memory_call(307, &rows)) << "a launch";
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
