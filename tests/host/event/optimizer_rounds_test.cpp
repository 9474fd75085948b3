// Which optimizer steps make one step of the training loop.
#include "host/event/optimizer_rounds.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace numsan {
namespace {

/// A training loop in miniature. An optimizer is named by a letter, and has two parameters.
struct Loop {
    OptimizerRounds rounds;
    int parameters[26][2] = {};
    int count = 0;

    void step(char name, bool backward = true, StackId stack = 0) {
        if (backward) rounds.backward();
        OptimizerRounds::Step step;
        step.stack = stack != 0 ? stack : static_cast<StackId>(name);
        for (const int& parameter : parameters[name - 'a']) rounds.wrote(step, &parameter);
        count += rounds.ended(step);
    }
    /// The numbers of the steps that come after each optimizer's step.
    std::vector<int> steps(const std::string& names) {
        std::vector<int> counts;
        for (const char name : names) {
            step(name);
            counts.push_back(count);
        }
        return counts;
    }
};

using Counts = std::vector<int>;

TEST(OptimizerRounds, EachStepOfOneOptimizerIsARound) { EXPECT_EQ(Loop().steps("aaaa"), (Counts{1, 2, 3, 4})); }

TEST(OptimizerRounds, TwoThatTakeTurnsMakeOneRound) {
    EXPECT_EQ(Loop().steps("abababab"), (Counts{1, 1, 1, 2, 2, 3, 3, 4}));
}

TEST(OptimizerRounds, ManyThatStepTogetherMakeOneRound) {
    EXPECT_EQ(Loop().steps("abcdabcdabcd"), (Counts{1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3}));
}

TEST(OptimizerRounds, OneThatStepsMoreOftenCounts) {
    Loop loop;
    loop.steps("aaaaab");
    EXPECT_EQ(loop.count, 5);
    loop.steps("aaaaab");
    EXPECT_EQ(loop.count, 10);
    EXPECT_EQ(loop.steps("aaaaab"), (Counts{11, 12, 13, 14, 15, 15}));
    EXPECT_EQ(loop.steps("aaaaab"), (Counts{16, 17, 18, 19, 20, 20}));
}

TEST(OptimizerRounds, OneThatComesOftenAtTheEndOfAnIterationCounts) {
    Loop loop;
    loop.steps("abb");
    EXPECT_EQ(loop.count, 2);
    loop.steps("abbabb");
    EXPECT_EQ(loop.count, 6);
}

TEST(OptimizerRounds, OneAfterTheOther) {
    Loop loop;
    loop.steps("aaaa");
    EXPECT_EQ(loop.steps("bbbb"), (Counts{4, 5, 6, 7}));
    loop.steps("aaaa");
    EXPECT_EQ(loop.count, 11);
}

TEST(OptimizerRounds, AStepThatIsLeftOutMovesNothingForLong) {
    Loop loop;
    loop.steps("abab");
    loop.steps("b");  // a's gradients had an overflow
    loop.steps("ababab");
    EXPECT_EQ(loop.count, 6);
}

TEST(OptimizerRounds, AnOptimizerIsKnownByItsParametersNotByItsLine) {
    Loop loop;
    for (int epoch = 0; epoch < 3; ++epoch) {
        for (int i = 0; i < 4; ++i) loop.step('a', true, 1);
        loop.step('a', true, 2);  // what is left of an epoch whose gradients are accumulated
    }
    EXPECT_EQ(loop.count, 15);
}

TEST(OptimizerRounds, OneLineMayStepManyThatHaveTheirGradientsAlready) {
    Loop loop;
    for (int i = 0; i < 5; ++i) {
        loop.step('a', true, 1);
        loop.step('b', false, 1);
        loop.step('c', false, 1);
    }
    EXPECT_EQ(loop.count, 5);
}

TEST(OptimizerRounds, CopiesOfAModelThatStepAtOneLineAreOne) {
    Loop loop;
    for (char task = 'a'; task <= 'j'; ++task) {
        for (int i = 0; i < 3; ++i) loop.step(task, true, 1);
    }
    EXPECT_EQ(loop.count, 30);
}

TEST(OptimizerRounds, OneLineMayStepTwoInTurn) {
    Loop loop;
    for (int i = 0; i < 6; ++i) {
        loop.step('a', true, 1);
        loop.step('b', true, 1);
    }
    EXPECT_EQ(loop.count, 7) << "that b is another one is known when a goes on";
}

TEST(OptimizerRounds, AParameterThatHadNoGradientBeforeIsTheOptimizersToo) {
    Loop loop;
    int late = 0;
    for (int i = 0; i < 4; ++i) {
        loop.step('a');
        loop.rounds.backward();
        OptimizerRounds::Step step;
        step.stack = static_cast<StackId>(i) + 1000;
        if (i > 1) loop.rounds.wrote(step, &late);
        loop.rounds.wrote(step, &loop.parameters[0][1]);
        loop.count += loop.rounds.ended(step);
    }
    EXPECT_EQ(loop.count, 8);
}

TEST(OptimizerRounds, OneWhoseParametersAreNotSeenIsKnownByItsLine) {
    OptimizerRounds rounds;
    int count = 0;
    for (int i = 0; i < 6; ++i) {
        rounds.backward();
        OptimizerRounds::Step step;
        step.stack = i % 2 == 0 ? 1 : 2;
        count += rounds.ended(step);
    }
    EXPECT_EQ(count, 3);
}

TEST(OptimizerRounds, OneForEachParameterThatIsNotSeenStepsOnceAfterABackward) {
    OptimizerRounds rounds;
    std::vector<int> counts;
    int count = 0;
    for (int i = 0; i < 12; ++i) {
        if (i % 3 == 0) rounds.backward();
        OptimizerRounds::Step step;
        step.stack = 1;
        count += rounds.ended(step);
        counts.push_back(count);
    }
    EXPECT_EQ(counts, (Counts{1, 2, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6}))
        << "how many there are is learned in the first round";
}

TEST(OptimizerRounds, StepsGoOnWhereBackwardPassesAreNoLongerSeen) {
    OptimizerRounds rounds;
    int count = 0;
    for (int i = 0; i < 20; ++i) {
        if (i < 3) rounds.backward();
        OptimizerRounds::Step step;
        step.stack = 1;
        count += rounds.ended(step);
    }
    EXPECT_EQ(count, 20) << "a graph that is replayed, or gradients that the program computes";
}

TEST(OptimizerRounds, ThreadsThatStepFromOneLineTakeNoBackwardPassFromEachOther) {
    OptimizerRounds rounds;
    int count = 0;
    const auto step = [&] {
        OptimizerRounds::Step made;
        made.stack = 1;
        count += rounds.ended(made);
    };
    for (int i = 0; i < 4; ++i) {
        rounds.backward();
        step();  // takes the backward pass of the other for its own
        std::thread(step).join();
    }
    EXPECT_EQ(count, 8);
}

TEST(OptimizerRounds, WithoutAutogradEachStepCounts) {
    OptimizerRounds rounds;
    int count = 0;
    for (int i = 0; i < 4; ++i) {
        OptimizerRounds::Step step;
        step.stack = 1;
        count += rounds.ended(step);
    }
    EXPECT_EQ(count, 4) << "the program computes its gradients by itself";
}

TEST(OptimizerRounds, AfterVeryManyParametersThatAreGoneOthersAreLearned) {
    Loop loop;
    const std::vector<int> gone(100000);
    OptimizerRounds::Step step;
    for (const int& parameter : gone) loop.rounds.wrote(step, &parameter);
    loop.rounds.ended(step);
    constexpr StackId kLine = 9;
    const auto pairs = [&](int count) {
        for (int i = 0; i < count; ++i) {
            loop.step('a', true, kLine);
            loop.step('b', true, kLine);
        }
    };
    pairs(8);
    const int before = loop.count;
    pairs(8);
    EXPECT_EQ(loop.count - before, 8);
}

TEST(OptimizerRounds, AfterVeryManyLinesOthersAreLearned) {
    Loop loop;
    for (StackId line = 100; line < 1000; ++line) loop.step('a', true, line);
    const int before = loop.count;
    loop.steps("abababab");
    EXPECT_EQ(loop.count - before, 4);
}

}  // namespace
}  // namespace numsan
