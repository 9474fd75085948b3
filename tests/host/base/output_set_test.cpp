// Bits for outputs, the last of which stands for many.
#include "host/base/output_set.h"

#include <gtest/gtest.h>

namespace numsan {
namespace {

TEST(OutputSet, HoldsWhatWasAdded) {
    OutputSet set;
    EXPECT_FALSE(set.any());
    set.add(0);
    set.add(62);
    for (const int32_t i : {0, 62}) EXPECT_TRUE(set.contains(i)) << i;
    for (const int32_t i : {1, 61, 63, 64}) EXPECT_FALSE(set.contains(i)) << i;
    EXPECT_TRUE(set.any());
    EXPECT_FALSE(set.is_all());
}

TEST(OutputSet, TheLastBitStandsForAllFromThereOn) {
    OutputSet set;
    set.add(1000);
    EXPECT_EQ(set, OutputSet::only(63));
    for (const int32_t i : {63, 64, 128, 1 << 30}) EXPECT_TRUE(set.contains(i)) << i;
    EXPECT_FALSE(set.contains(62));
}

TEST(OutputSet, OthersAreTheRest) {
    EXPECT_TRUE(OutputSet{}.others().is_all());
    EXPECT_EQ(OutputSet::all().others(), OutputSet{});
    const OutputSet others = OutputSet::only(5).others();
    EXPECT_FALSE(others.contains(5));
    for (const int32_t i : {0, 4, 6, 63, 100}) EXPECT_TRUE(others.contains(i)) << i;
}

}  // namespace
}  // namespace numsan
