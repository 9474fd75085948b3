#include "host/event/scan_clock.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/host/session/played.h"

namespace numsan {
namespace {

TEST(ScanClock, OneOpOfSixtyFourStandsForAll) {
    int all = 0, of_a_loop = 0;
    for (int64_t seq = 0; seq < 64'000; ++seq) all += ScanClock::samples(OpSeq{seq}) ? 1 : 0;
    for (int64_t seq = 5; seq < 64'000 * 64; seq += 64) of_a_loop += ScanClock::samples(OpSeq{seq}) ? 1 : 0;
    EXPECT_NEAR(all, 1000, 20);
    EXPECT_NEAR(of_a_loop, 1000, 20) << "one op of a loop of 64";
    ScanClock clock;
    EXPECT_EQ(clock.seconds(), 0);
    clock.large(5'000'000'000);
    EXPECT_DOUBLE_EQ(clock.seconds(), 5);
}

TEST(ScanClock, InterruptionDoesNotCountSixtyFourTimes) {
    ScanClock clock;
    clock.sampled(10'000'000, 2, 500);
    EXPECT_DOUBLE_EQ(clock.seconds(), 64 * 2500e-9);
    ScanClock other;
    other.sampled(0, 1, 4);
    EXPECT_EQ(other.seconds(), 0) << "less than a look at the clock takes";
}

TEST(ScanClock, ReportHasWhatScanningTook) {
    Played& r = Played::make();
    MadeUp large(std::vector<float>(1 << 20, 1.0F)), small{2};
    const auto bytes = static_cast<double>(large.values.size() * sizeof(float));
    const int64_t before = ScanClock::now();
    for (int i = 0; i < 20; ++i) r.op(kMul, {small.view()}, {large.returned()});
    const double took = 1e-9 * static_cast<double>(ScanClock::now() - before);
    r.session->finish(0);
    const json cost = r.read()["cost"];
    ASSERT_TRUE(cost["scan_s"].is_number()) << cost;
    EXPECT_GT(cost["scan_s"], 20 * bytes / 1e12) << "80 MB at a terabyte a second";
    EXPECT_LT(cost["scan_s"], took) << "no other output is there to count 64 times";
    EXPECT_TRUE(cost["hook_s"].is_null());
    r.remove();
}

TEST(ScanClock, SmallOutputsAreInIt) {
    Played& r = Played::make();
    MadeUp x{1}, y{2};
    for (int i = 0; i < 6400; ++i) r.op(kMul, {x.view()}, {y.returned()});
    r.session->finish(0);
    const json cost = r.read()["cost"];
    EXPECT_GE(cost["scan_s"], 0);
    EXPECT_LT(cost["scan_s"], 6400 * 1.1e-6) << "a microsecond a scan at most";
    r.remove();
}

}  // namespace
}  // namespace numsan
