// Unit tests of host/base/coldest.h.
#include "host/base/coldest.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace numsan {
namespace {

int64_t itself(int64_t use) { return use; }

TEST(ForgetColdest, a_quarter_goes_and_the_last_used_stay) {
    std::map<int, int64_t> map;
    for (int i = 0; i < 100; ++i) map[i] = 1000 - i;  // the last key is the coldest
    std::set<int> gone;
    EXPECT_EQ(forget_coldest(map, itself, [&](int key) { gone.insert(key); }), 25u);
    EXPECT_EQ(map.size(), 75u);
    EXPECT_EQ(*gone.begin(), 75);
    EXPECT_EQ(map.count(0), 1u);
}

TEST(ForgetColdest, of_few_one_goes) {
    std::map<int, int64_t> map{{1, 5}, {2, 4}};
    EXPECT_EQ(forget_coldest(map, itself), 1u);
    EXPECT_EQ(map.count(1), 1u);
    EXPECT_EQ(forget_coldest(map, itself), 1u);
    EXPECT_EQ(forget_coldest(map, itself), 0u);
}

}  // namespace
}  // namespace numsan
