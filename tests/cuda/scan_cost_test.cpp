// What launches and bytes cost, learned from launches of a made-up device.
#include "cuda/scan_cost.h"

#include <gtest/gtest.h>

#include <cmath>

namespace numsan::gpu {
namespace {

struct Device {
    double launch, per_nanosecond;
    int64_t time(int64_t bytes) const { return static_cast<int64_t>(launch + double(bytes) / per_nanosecond); }
};

void run(ScanCost& cost, const Device& device, int launches) {
    for (int i = 0; i < launches; ++i) {
        const int64_t bytes = int64_t(1) << (10 + i * 7 % 18);  // 1 KB to 128 MB
        cost.learn(bytes, device.time(bytes));
    }
}

TEST(ScanCost, BeforeAnythingIsTimedItIsTheEstimate) {
    EXPECT_EQ(ScanCost().of(1, 0), 2500);
    EXPECT_EQ(ScanCost().of(0, 1'500'000), 1000);
    EXPECT_EQ(ScanCost().of(3, 15'000'000), 3 * 2500 + 10'000);
}

TEST(ScanCost, IsThatOfTheDeviceSoon) {
    for (const Device& device : {Device{1500, 3800}, Device{9000, 250}, Device{4000, 900}}) {
        ScanCost cost;
        run(cost, device, 100);
        EXPECT_NEAR(cost.bytes_per_nanosecond(), device.per_nanosecond, 0.05 * device.per_nanosecond);
        EXPECT_NEAR(double(cost.of(1, 0)), std::max(device.launch, 2500.0), 0.1 * device.launch);
    }
}

TEST(ScanCost, FollowsADeviceThatBecomesSlower) {
    ScanCost cost;
    run(cost, {3000, 3000}, 300);
    run(cost, {3000, 1000}, 300);
    EXPECT_NEAR(cost.bytes_per_nanosecond(), 1000, 100);
}

TEST(ScanCost, OneLaunchThatHadToWaitMovesLittle) {
    ScanCost cost;
    run(cost, {3000, 2000}, 300);
    const int64_t before = cost.of(100, 1 << 30);
    cost.learn(1 << 20, 500'000'000);
    cost.learn(64, 500'000'000);
    EXPECT_LT(cost.of(100, 1 << 30), before + before / 4);
}

TEST(ScanCost, LaunchesOfOneSizeLeaveTheOtherEndToTheEstimate) {
    ScanCost cost;
    for (int i = 0; i < 500; ++i) cost.learn(512, 4000);
    EXPECT_NEAR(double(cost.of(1, 0)), 4000, 200);
    EXPECT_NEAR(cost.bytes_per_nanosecond(), ScanCost::kBytesPerNanosecond, 0.2 * ScanCost::kBytesPerNanosecond);
}

TEST(ScanCost, NoLaunchCostsLessThanItsCall) {
    ScanCost cost;
    for (int i = 0; i < 300; ++i) cost.learn(1024, 300);
    EXPECT_EQ(cost.of(10, 0), 25'000);
}

TEST(ScanCost, AClockThatStandsStillTeachesNothing) {
    ScanCost cost;
    for (int i = 0; i < 300; ++i) cost.learn(1 << 20, 0);
    EXPECT_EQ(cost.of(1, 1'500'000), ScanCost().of(1, 1'500'000));
}

}  // namespace
}  // namespace numsan::gpu
