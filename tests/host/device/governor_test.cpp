// Budgets in a time that passes when a test says so.
#include "host/device/governor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace numsan {
namespace {

using Window = Governor::Window;

constexpr int64_t kMillisecond = 1'000'000;
int64_t time_now = 0;

/// A program of equal steps, each of kOps equal ops.
struct Simulated {
    static constexpr int kOps = 400;

    Governor governor;
    int64_t step = 0;
    std::vector<int> read = std::vector<int>(kOps);  ///< how often each op was

    explicit Simulated(const Governor::Budget& budget) : governor(budget, [] { return time_now; }) {}

    struct Step {
        int opening = 0, open = 0, closed = 0;
        int64_t spent = 0;
    };
    /// One step, in which an op costs `each` where it is looked at, and something else `anyhow`.
    Step run(int64_t milliseconds, int64_t each, int64_t anyhow = 0) {
        Step done;
        for (int op = 0; op < kOps; ++op) {
            const Window window = governor.window(step);
            int& count = window == Window::Opening ? done.opening : window == Window::Open ? done.open : done.closed;
            ++count;
            if (window != Window::Closed) {
                ++read[static_cast<size_t>(op)];
                governor.spend(each, Governor::Spent::InWindow);
                done.spent += each;
            }
            time_now += milliseconds * kMillisecond / kOps;
        }
        if (anyhow != 0) governor.spend(anyhow, Governor::Spent::Anyhow);
        done.spent += anyhow;
        ++step;
        return done;
    }
};

TEST(Governor, TheOpeningIsPaidForByTheCredit) {
    Simulated s({0.01, 100 * kMillisecond, false});
    for (int i = 0; i < 10; ++i) EXPECT_EQ(s.run(40, 25'000).opening, Simulated::kOps) << i;
    Simulated::Step step = s.run(40, 25'000);
    EXPECT_GT(step.closed, 0);
    for (int i = 0; i < 20; ++i) {
        step = s.run(40, 25'000);
        EXPECT_EQ(step.opening, 0) << "it does not come again";
    }
}

TEST(Governor, NoRoundCostsMoreThanItsShareAndInTheLongRunMostOfItIsSpent) {
    for (const double share : {0.01, 0.05}) {
        Simulated s({share, 0, false});
        constexpr int64_t kEach = 20'000;  // 8 ms for all of a step
        int64_t spent = 0;
        const int64_t began = time_now;
        for (int i = 0; i < 3000; ++i) {
            const Simulated::Step step = s.run(40, kEach, 20'000);
            spent += step.spent;
            if (i <= 1) continue;
            EXPECT_LE(step.spent, int64_t(share * 40 * kMillisecond) + kEach + 20'000) << i;
        }
        const double used = double(spent) / double(time_now - began);
        EXPECT_LE(used, share * 1.001);
        EXPECT_GE(used, share * 0.8);
    }
}

TEST(Governor, EveryOpHasItsTurn) {
    Simulated s({0.02, 0, false});
    constexpr int kSteps = 1000;
    for (int i = 0; i < kSteps; ++i) s.run(40, 20'000, 100'000);  // some is always spent at the end of a step
    const auto [least, most] = std::minmax_element(s.read.begin(), s.read.end());
    EXPECT_GT(*least, 20) << "of " << kSteps;
    EXPECT_LT(*most, 4 * *least);
}

TEST(Governor, EveryOpHasItsTurnWhereStepsDifferInLength) {
    struct Steps {
        int period, ops, longer;  ///< one in `period` is longer
    };
    for (const Steps& steps : {Steps{2, 200, 600}, Steps{6, 200, 600}, Steps{2, 200, 400}, Steps{50, 200, 230}}) {
        Governor governor({0.02, 0, false}, [] { return time_now; });
        std::vector<int> read(static_cast<size_t>(steps.longer));
        for (int step = 0; step < 6000; ++step) {
            const int ops = step % steps.period == steps.period - 1 ? steps.longer : steps.ops;
            for (int op = 0; op < ops; ++op) {
                if (governor.window(step) != Window::Closed) {
                    ++read[static_cast<size_t>(op)];
                    governor.spend(20'000, Governor::Spent::InWindow);
                }
                time_now += kMillisecond / 10;
            }
        }
        const std::string what = std::to_string(steps.period) + ", " + std::to_string(steps.longer);
        EXPECT_GT(*std::min_element(read.begin(), read.end()), 0) << what;
        std::vector<int> common(read.begin(), read.begin() + steps.ops);
        std::sort(common.begin(), common.end());
        EXPECT_GT(common.front(), 20) << what;
        EXPECT_LT(common.back(), 12 * common[common.size() / 2]) << what;
    }
}

TEST(Governor, LongStepsAreRoundsToo) {
    Governor governor({0.05, 100 * kMillisecond, false}, [] { return time_now; });
    int64_t spent = 0, began = 0;
    for (int step = 0; step < 200; ++step) {
        if (step == 30) spent = 0, began = time_now;
        for (int op = 0; op < 2000; ++op) {
            if (governor.window(step) != Window::Closed) {
                governor.spend(150'000, Governor::Spent::InWindow);
                spent += 150'000;
            }
            time_now += kMillisecond / 2;
        }
    }
    const double share = double(spent) / double(time_now - began);
    EXPECT_LE(share, 0.0505);
    EXPECT_GE(share, 0.04);
}

TEST(Governor, WhatRunsAfterTheLastStepIsLookedAtToo) {
    Governor governor({0.05, 0, false}, [] { return time_now; });
    int64_t spent = 0, began = 0;
    for (int op = 0; op < 400'000; ++op) {
        if (op == 100'000) spent = 0, began = time_now;
        if (governor.window(std::min(op / 400, 100)) != Window::Closed) {
            governor.spend(20'000, Governor::Spent::InWindow);
            spent += 20'000;
        }
        time_now += kMillisecond / 20;
    }
    const double share = double(spent) / double(time_now - began);
    EXPECT_LE(share, 0.0505);
    EXPECT_GE(share, 0.01);
}

TEST(Governor, ThreadsBeginAStepOnce) {
    static std::atomic<int64_t> now{0};
    Governor governor({0.05, 0, false}, [] { return now.load(); });
    std::atomic<int64_t> spent{0}, step{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 200'000; ++i) {
                if (governor.window(step.load()) != Window::Closed) {
                    governor.spend(20'000, Governor::Spent::InWindow);
                    spent.fetch_add(20'000);
                }
                if (now.fetch_add(100'000) % 40'000'000 == 0) step.fetch_add(1);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    const double share = double(spent.load()) / double(now.load());
    EXPECT_LE(share, 0.052);
    EXPECT_GE(share, 0.035);
}

TEST(Governor, WhatAScanTookTooMuchIsOwed) {
    Simulated s({0.05, 0, false});
    int64_t spent = 0;
    const int64_t began = time_now;
    for (int i = 0; i < 1000; ++i) spent += s.run(10, 5 * kMillisecond).spent;  // one op is ten steps' share
    EXPECT_LE(double(spent), 0.05 * double(time_now - began) + 5 * kMillisecond);
    EXPECT_GE(double(spent), 0.04 * double(time_now - began));
}

TEST(Governor, WhatIsLookedAtAnyhowIsCountedToo) {
    Simulated s({0.01, 0, false});
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(s.run(10, 2'500, kMillisecond).closed, Simulated::kOps);
}

TEST(Governor, WithoutStepsTimeIsCutIntoRounds) {
    Simulated s({0.05, 100 * kMillisecond, false});
    int read = 0, closed = 0;
    for (int i = 0; i < 200'000; ++i) {
        const Window window = s.governor.window(0);
        (window == Window::Closed ? closed : read) += 1;
        if (window != Window::Closed) s.governor.spend(10'000, Governor::Spent::InWindow);
        time_now += 20'000;
    }
    EXPECT_GT(closed, read);
    EXPECT_GT(read, 10'000);
}

TEST(Governor, APauseEarnsNoMoreThanAWhile) {
    Simulated s({0.05, 0, false});
    for (int i = 0; i < 10; ++i) s.run(10, 2'500);
    time_now += 3600 * 1000 * kMillisecond;
    for (int i = 0; i < 10; ++i) EXPECT_LE(s.run(10, 2'500).spent, kMillisecond + 2'500) << i;
}

TEST(Governor, StepsThatTakeNoTimeAreNoReasonNotToLookAtLaterOnes) {
    Simulated s({0.05, 0, false});
    for (int i = 0; i < 10; ++i) s.run(0, 2'500);
    int64_t spent = 0;
    for (int i = 0; i < 100; ++i) spent += s.run(10, 2'500).spent;
    EXPECT_GT(double(spent), 0.03 * 1000 * kMillisecond);
}

TEST(Governor, NoLimitIsNoLimit) {
    Simulated s({0, 0, true});
    for (int i = 0; i < 10; ++i) EXPECT_EQ(s.run(1, kMillisecond).open, Simulated::kOps);
}

}  // namespace
}  // namespace numsan
