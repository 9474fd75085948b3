// Budgets in a time that passes when a test says so.
#include "host/device/governor.h"

#include <gtest/gtest.h>

namespace numsan {
namespace {

using Round = Governor::Round;

constexpr int64_t kMillisecond = 1'000'000;
int64_t time_now = 0;

struct Simulated {
    Governor governor;
    int64_t step = 0;

    explicit Simulated(const Governor::Budget& budget) : governor(budget, [] { return time_now; }) {}

    /// One step; `full` is what it costs to look at everything, `lean` what is looked at anyhow.
    Round run(int64_t milliseconds, int64_t full, int64_t lean) {
        const Round round = governor.round(step);
        governor.spend(round == Round::Lean ? lean : full);
        time_now += milliseconds * kMillisecond;
        ++step;
        return round;
    }
};

TEST(Governor, TheOpeningIsPaidForByTheCredit) {
    Simulated s({0.01, 100 * kMillisecond, false});
    for (int i = 0; i < 10; ++i) EXPECT_EQ(s.run(40, 10 * kMillisecond, 0), Round::Opening) << i;
    EXPECT_EQ(s.run(40, 10 * kMillisecond, 0), Round::Lean);
}

TEST(Governor, CostsStayWithinTheShareInTheLongRun) {
    for (const double share : {0.01, 0.05}) {
        Simulated s({share, 0, false});
        int64_t spent = 0, whole = 0;
        const int64_t began = time_now;
        for (int i = 0; i < 5000; ++i) {
            const Round round = s.run(40, 8 * kMillisecond, 20'000);
            spent += round == Round::Lean ? 20'000 : 8 * kMillisecond;
            whole += round == Round::Whole;
        }
        const double used = double(spent) / double(time_now - began);
        EXPECT_LE(used, share * 1.02);
        EXPECT_GE(used, share * 0.95) << "what may be spent is";
        EXPECT_GT(whole, 100);
    }
}

TEST(Governor, WhatIsLookedAtAnyhowIsCountedToo) {
    Simulated s({0.01, 0, false});
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(s.run(10, kMillisecond, kMillisecond), Round::Lean);
}

TEST(Governor, WithoutStepsTimeIsCutIntoRounds) {
    Simulated s({0.05, 100 * kMillisecond, false});
    int whole = 0, lean = 0;
    for (int i = 0; i < 200'000; ++i) {
        const Round round = s.governor.round(0);
        (round == Round::Lean ? lean : whole) += 1;
        if (round != Round::Lean) s.governor.spend(10'000);
        time_now += 20'000;
    }
    EXPECT_GT(lean, whole);
    EXPECT_GT(whole, 10'000);
}

TEST(Governor, APauseEarnsNoMoreThanAWhile) {
    Simulated s({0.05, 0, false});
    s.run(10, kMillisecond, 0);
    time_now += 3600 * 1000 * kMillisecond;
    int whole = 0;
    for (int i = 0; i < 1000; ++i) whole += s.run(1, kMillisecond, 0) != Round::Lean;
    EXPECT_LE(whole, 160);
}

TEST(Governor, NoLimitIsNoLimit) {
    Simulated s({0, 0, true});
    for (int i = 0; i < 100; ++i) EXPECT_EQ(s.run(1, kMillisecond * 10, 0), Round::Whole);
}

}  // namespace
}  // namespace numsan
