// The enumeration against its table, and sets of mechanisms by their ids.
#include "host/finding/mechanisms.h"

#include <gtest/gtest.h>

#include <string>

namespace numsan {
namespace {

TEST(Mechanisms, EachHasItsRow) {
    for (const MechanismInfo& row : kMechanisms) {
        ASSERT_EQ(info(row.value), &row) << row.id;
        EXPECT_STREQ(to_string(row.value), row.id);
    }
    EXPECT_EQ(std::string(info(Mechanism::SING)->code), "NS102");
    EXPECT_EQ(info(Mechanism::None), nullptr);
    EXPECT_STREQ(to_string(Mechanism::None), "");
}

TEST(Mechanisms, ASetHoldsWhatItsTextNames) {
    constexpr MechanismSet set = "OVF DIV0 PREC";
    for (const MechanismInfo& row : kMechanisms) {
        const std::string id = row.id;
        EXPECT_EQ(set.contains(row.value), id == "OVF" || id == "DIV0" || id == "PREC") << id;
    }
    EXPECT_FALSE(set.contains(Mechanism::None));
    EXPECT_FALSE(set.empty());
    EXPECT_TRUE(MechanismSet{}.empty());
}

}  // namespace
}  // namespace numsan
