#include "interpose/python/names/deadline.h"

#include <gtest/gtest.h>

#include <thread>

namespace numsan {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(Deadline, StandsStillWhileTheThreadWaits) {
    const Deadline deadline(milliseconds(50));
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_FALSE(deadline.is_over());
}

TEST(Deadline, IsOverWhereTheThreadHasWorkedSoLong) {
    const auto began = steady_clock::now();
    const Deadline deadline(milliseconds(200));
    while (!deadline.is_over() && steady_clock::now() - began < milliseconds(15'000)) {
    }
    EXPECT_TRUE(deadline.is_over());
    EXPECT_LT(steady_clock::now() - began, milliseconds(15'000));
}

TEST(Deadline, IsOverWhereTwentyTimesAsMuchHasPassed) {
    const Deadline deadline(milliseconds(2));
    std::this_thread::sleep_for(milliseconds(41));
    EXPECT_TRUE(deadline.is_over());
}

}  // namespace
}  // namespace numsan
