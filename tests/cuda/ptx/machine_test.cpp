// The machine itself: it runs what is right, and says what is not.
#include "tests/cuda/ptx/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace numsan::ptx {
namespace faults {
extern const std::vector<Kernel> kernels;
}
namespace {

constexpr uint32_t kThreads = 64;

class Machine : public testing::Test {
  protected:
    /// What is said of the kernel `name`, whose memory may be written if `writable`.
    std::string said_of(const char* name, bool writable = false, uint32_t seed = 0) {
        const auto named = [&](const Kernel& kernel) { return std::strcmp(kernel.name, name) == 0; };
        const auto kernel = std::find_if(faults::kernels.begin(), faults::kernels.end(), named);
        const uint32_t* parameter = words;
        return run({*kernel, &parameter, 1, kThreads, 1, seed, {{words, sizeof words, writable}}});
    }
    alignas(16) uint32_t words[32] = {};
};

TEST_F(Machine, RunsWhatIsRight) {
    for (uint32_t seed = 0; seed < 4; ++seed) {
        std::fill(std::begin(words), std::end(words), 99u);
        EXPECT_EQ(said_of("right", true, seed), "");
        for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(words[i], (i ^ 2) ^ 1) << i;
    }
}

TEST_F(Machine, SeesSharedMemoryThatNoBarrierOrders) {
    EXPECT_EQ(said_of("without_a_barrier"),
              "without_a_barrier, line 46, block 0, thread 1: no barrier is between this write to shared memory and "
              "another thread's read");
}

TEST_F(Machine, SeesThreadsThatWaitForEver) {
    EXPECT_EQ(said_of("one_at_the_barrier"),
              "one_at_the_barrier, line 63, block 0, thread 7: it waits for threads that never get there");
    EXPECT_EQ(said_of("half_a_warp_shuffles"),
              "half_a_warp_shuffles, line 95, block 0, thread 0: it waits for threads that never get there");
}

TEST_F(Machine, SeesThreadsAtDifferentBarriers) {
    EXPECT_EQ(said_of("two_barriers"),
              "two_barriers, line 78, block 0, thread 7: it is at another barrier than thread 0, which is at that of "
              "line 81");
}

TEST_F(Machine, SeesWhatIsOutsideOrNotAligned) {
    EXPECT_EQ(said_of("one_past_the_end"),
              "one_past_the_end, line 108, block 0, thread 0: an access of 4 bytes outside of all memory");
    EXPECT_EQ(
        said_of("not_aligned"),
        "not_aligned, line 120, block 0, thread 0: an access of 16 bytes is not aligned: its address ends with 8");
    EXPECT_EQ(said_of("writes_what_it_may_read"),
              "writes_what_it_may_read, line 132, block 0, thread 0: a write of memory that is read only");
    EXPECT_EQ(said_of("writes_what_it_may_read", true), "");
}

TEST_F(Machine, SeesADivisionByZero) {
    EXPECT_EQ(said_of("by_zero"), "by_zero, line 143, block 0, thread 0: division by zero");
}

// Streams of the fake driver launch so, over the same words.
TEST_F(Machine, RunsInSeveralThreadsAtOnce) {
    constexpr uint32_t kHosts = 4, kLaunches = 200;
    std::vector<std::thread> hosts;
    std::atomic<uint32_t> faults{0};
    for (uint32_t host = 0; host < kHosts; ++host) {
        hosts.emplace_back([&, host] {
            for (uint32_t i = 0; i < kLaunches; ++i) faults += !said_of("counts", true, host).empty();
            faults += said_of("by_zero").empty();
            faults += !said_of("counts", true, 1).empty();
        });
    }
    for (std::thread& host : hosts) host.join();
    EXPECT_EQ(faults, 0u);
    EXPECT_EQ(words[0], kHosts * (kLaunches + 1) * kThreads);
    EXPECT_EQ(words[1], 3 * words[0]);
}

TEST_F(Machine, GoesOnAfterAFault) {
    EXPECT_NE(said_of("one_at_the_barrier"), "");
    EXPECT_EQ(said_of("right", true), "");
}

// Values of the PTX ISA's own descriptions.
TEST(Instructions, ShiftByTheWidthAndMore) {
    EXPECT_EQ(shift_left(uint32_t(1), 31), 0x80000000u);
    EXPECT_EQ(shift_left(uint32_t(1), 32), 0u);
    EXPECT_EQ(shift_right(int32_t(-8), 1), -4);
    EXPECT_EQ(shift_right(int32_t(-8), 40), -1);
    EXPECT_EQ(shift_right(uint64_t(8), 64), 0u);
}

TEST(Instructions, HalvesDoNotCarry) {
    const auto sum = [](uint16_t x, uint16_t y) { return uint16_t(x + y); };
    EXPECT_EQ(each_half(0x0001ffffu, 0x00010001u, sum), 0x00020000u);
}

TEST(Instructions, BitsAreInserted) {
    EXPECT_EQ(insert_bits<uint32_t>(0xff, 0, 8, 4), 0xf00u);
    EXPECT_EQ(insert_bits<uint64_t>(0, ~uint64_t(0), 60, 16), 0x0fffffffffffffffu);
    EXPECT_EQ(insert_bits<uint32_t>(5, 7, 0, 0), 7u);
}

TEST(Instructions, BytesArePermuted) {
    EXPECT_EQ(permute_bytes(0x33221100u, 0x77665544u, 0x3210), 0x33221100u);
    EXPECT_EQ(permute_bytes(0x33221100u, 0x77665544u, 0x5410), 0x55441100u);
    EXPECT_EQ(permute_bytes(0x00008000u, 0x77665544u, 0x0009), 0x000000ffu) << "the sign of byte 1";
}

}  // namespace
}  // namespace numsan::ptx
