#include "interpose/python/names/thread_clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace numsan {
namespace {

using std::chrono::milliseconds;

TEST(ThreadClock, StandsStillWhileTheThreadWaits) {
    const auto began = ThreadClock::now();
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_LT(ThreadClock::now() - began, milliseconds(50));
}

TEST(ThreadClock, GoesOnWhileTheThreadWorks) {
    const auto began = ThreadClock::now();
    const auto real = std::chrono::steady_clock::now();
    while (ThreadClock::now() - began < milliseconds(5)) {
    }
    EXPECT_GE(std::chrono::steady_clock::now() - real, milliseconds(4));
}

}  // namespace
}  // namespace numsan
