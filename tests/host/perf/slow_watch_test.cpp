// Made-up training loops on a made-up clock: what is measured, what is said of it, and what is not.
#include "host/perf/slow_watch.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/host/perf/made_training.h"

namespace numsan {
namespace {

/// Of float64 or integers, with values that can be changed.
class Words final : public MadeUpTensor {
  public:
    std::vector<uint64_t> words;
    Words(std::vector<uint64_t> w, DType type) : MadeUpTensor(w.size(), 0, type), words(std::move(w)) {}

  private:
    const void* data() const override { return words.data(); }
};

TEST(SlowWatch, HealthyLoopHasNoFinding) {
    MadeTraining loop;
    loop.steps(20, [&] { loop.forward(); });
    EXPECT_EQ(loop.found(), "");
    const SlowRun run = loop.run();
    EXPECT_EQ(run.steps, 16);
    EXPECT_NEAR(run.step_s, 0.0101, 1e-6);
    EXPECT_TRUE(run.not_measured.empty());
}

TEST(SlowWatch, NumsansOwnTimeIsNoStepsTime) {
    MadeTraining loop;
    loop.own = 5 * kMs;
    loop.steps(20, [&] { loop.forward(); });
    EXPECT_EQ(loop.found(), "");
    EXPECT_NEAR(loop.run().step_s, 0.0101, 1e-6);
}

TEST(SlowWatch, FewStepsSayNothing) {
    MadeTraining loop;
    loop.steps(7, [&] {
        MadeLoop::now += 50 * kMs;
        loop.forward();
    });
    EXPECT_EQ(loop.found(), "");
    ASSERT_EQ(loop.run().not_measured.size(), 1u);
    EXPECT_EQ(loop.run().not_measured[0], "the run: it has fewer than 6 steps that could be looked at");
    loop.steps(1, [&] {
        MadeLoop::now += 50 * kMs;
        loop.forward();
    });
    EXPECT_EQ(loop.found(), "NP107:1");
}

TEST(SlowWatch, PauseBeforeTheForwardPassIsAFinding) {
    MadeTraining loop;
    loop.steps(12, [&] {
        MadeLoop::now += 5 * kMs;
        loop.forward();
    });
    ASSERT_EQ(loop.found(), "NP107:1");
    EXPECT_EQ(loop.run().findings[0].measured, "no op runs for 5 ms of 15.1 ms (33 %)");
}

TEST(SlowWatch, PauseBehindAFewOpsIsAFinding) {
    MadeTraining loop;
    loop.steps(12, [&] {
        for (int i = 0; i < 20; ++i) loop.op({"aten::mul", {loop.batch.view()}, {loop.batch.returned()}}, kMs / 500, 5);
        MadeLoop::now += 5 * kMs;
        loop.forward();
    });
    EXPECT_NE(loop.found().find("NP107"), std::string::npos) << loop.found();
}

TEST(SlowWatch, LoopOfOpsBeforeTheForwardPassIsNoPause) {
    MadeTraining loop;
    loop.steps(12, [&] {
        for (int i = 0; i < 600; ++i) {
            MadeLoop::now += i % 100 == 50 ? 2 * kMs : kMs / 50;  // another program has the processor
            loop.op({"aten::mul", {loop.batch.view()}, {loop.batch.returned()}}, kMs / 500, 5);
        }
        loop.forward();
    });
    EXPECT_EQ(loop.found().find("NP107"), std::string::npos) << loop.found();
}

TEST(SlowWatch, PausesOfAFewStepsAreNone) {
    MadeTraining loop;
    for (int i = 0; i < 20; ++i) {
        if (i % 5 == 0) MadeLoop::now += 500 * kMs;  // a checkpoint
        loop.forward();
        loop.step();
    }
    EXPECT_EQ(loop.found(), "");
}

TEST(SlowWatch, LoaderIsNotAPauseOfTheProgramsOwn) {
    MadeTraining loop;
    loop.steps(12, [&] {
        loop.stacks.now = 7;
        loop.watch.loader_begins();
        MadeLoop::now += 4 * kMs;
        Words sample({1, 2}, DType::Float64);
        loop.op({"aten::stack", {}, {sample.returned()}}, kMs, 8);
        loop.watch.loader_ends();
        loop.forward();
    });
    ASSERT_EQ(loop.found(), "NP102:7 NP103:8");
    EXPECT_EQ(loop.run().findings[0].measured, "the loader is waited for 5 ms of 15.1 ms (33 %)");
}

TEST(SlowWatch, BatchThatIsMadeFasterThanAWorkerHandsItOverIsNoWait) {
    for (const int64_t batches : {1, 4}) {
        MadeTraining loop;
        loop.steps(12, [&] {
            for (int64_t i = 0; i < batches; ++i) {
                loop.stacks.now = 7;
                loop.watch.loader_begins();
                MadeLoop::now += kMs / 2;
                loop.watch.loader_ends();
            }
            MadeLoop::now += kMs / 10;
            loop.forward();
        });
        EXPECT_EQ(loop.found(), "") << batches;
    }
}

TEST(SlowWatch, Float64IsNamedWhereItComesIn) {
    MadeTraining loop;
    Words wide({1, 2}, DType::Float64), wider({1, 2}, DType::Float64), number({1}, DType::Float64);
    const auto body = [&] {
        loop.forward();
        loop.op({"aten::mean", {loop.activation.view()}, {number.returned()}}, kMs, 9);
        wide.words[0] += 1;
        loop.op({"aten::index", {}, {wide.returned()}}, kMs, 10);
        loop.op({"aten::mul", {wide.view(), loop.activation.view()}, {wider.returned()}}, 2 * kMs, 11);
    };
    loop.steps(12, body);
    ASSERT_EQ(loop.found(), "NP103:10");
    EXPECT_EQ(loop.run().findings[0].measured,
              "2 ops a step write float64, 3 ms of 14.1 ms (21 %); the first is `aten::index`");
    Words parameter({1, 2}, DType::Float64);
    parameter.flags = kParameter;
    loop.watch.leaf(parameter.view());
    EXPECT_EQ(loop.found(), "") << "a model of float64 means it";
}

TEST(SlowWatch, CastToAWiderTypeAndBackIsAFinding) {
    MadeTraining loop;
    MadeUpHalf narrow({1, 2}), again({1, 2});
    MadeUp wide{1, 2}, sum{1, 2};
    loop.steps(12, [&] {
        loop.forward();
        loop.op({"aten::_to_copy", {narrow.view()}, {wide.returned()}}, kMs, 12);
        loop.op({"aten::_to_copy", {wide.view()}, {again.returned()}}, kMs, 13);
    });
    ASSERT_EQ(loop.found().substr(0, 8), "NP104:13");
    EXPECT_EQ(loop.run().findings[0].measured,
              "`aten::_to_copy` 1 times a step, with the cast before it 2 ms of 12.1 ms (17 %)");
}

TEST(SlowWatch, CastsWithWorkBetweenOrThatRoundAreNone) {
    MadeTraining loop;
    MadeUpHalf narrow({1, 2}), again({1, 2}), rounded({1, 2});
    MadeUp wide{1, 2}, back{1, 2};
    const uint32_t gradient = kRequiresGrad;  // so that nothing is taken for repeated work
    loop.steps(12, [&] {
        loop.forward();
        loop.op({"aten::_to_copy", {narrow.view(gradient)}, {wide.returned()}}, kMs, 12);
        loop.op({"aten::mul_", {wide.view(gradient)}, {wide.written()}}, kMs, 13);
        loop.op({"aten::_to_copy", {wide.view(gradient)}, {again.returned()}}, kMs, 14);
        loop.op({"aten::_to_copy", {loop.activation.view(gradient)}, {rounded.returned()}}, kMs, 15);
        loop.op({"aten::_to_copy", {rounded.view(gradient)}, {back.returned()}}, kMs, 16);
    });
    EXPECT_EQ(loop.found(), "");
}

TEST(SlowWatch, WorkOnWhatNoOpWroteIsDoneAgain) {
    MadeTraining loop;
    MadeUp source{1, 2}, filled{1, 1}, mask{0, 1}, table{0, 1};
    loop.steps(12, [&] {
        loop.forward();
        loop.op({"aten::ones", {}, {filled.returned()}, OpClass::Constant}, kMs, 17);
        loop.op({"aten::tril", {filled.view()}, {mask.returned()}, OpClass::Preserving}, kMs, 18);
        loop.op({"aten::cos", {source.view()}, {table.returned()}}, 2 * kMs, 19);
    });
    EXPECT_EQ(loop.found(), "NP105:19 NP105:18") << "what is only filled is none";
    EXPECT_EQ(loop.run().findings[0].measured, "`aten::cos` 1 times a step, 2 ms of 14.1 ms (14 %)");
}

TEST(SlowWatch, WorkOnOtherValuesIsNotDoneAgain) {
    MadeTraining loop;
    MadeUp shared{1, 2}, scaled{1, 2}, random{1, 2}, noisy{1, 2}, edited{1, 2};
    float value = 0;
    loop.steps(12, [&] {
        loop.forward();
        scaled.values[0] = ++value;  // numpy has written to `shared`
        loop.op({"aten::mul", {shared.view()}, {scaled.returned()}}, 2 * kMs, 20);
        random.values[0] = noisy.values[0] = ++value;
        loop.op({"aten::rand", {}, {random.returned()}}, 2 * kMs, 21);
        loop.op({"aten::neg", {random.view()}, {noisy.returned()}}, 2 * kMs, 22);
        loop.op({"aten::exp", {loop.batch.view()}, {noisy.returned()}}, 2 * kMs, 23);
        loop.op({"aten::clone", {shared.view()}, {edited.returned()}, OpClass::Preserving}, 2 * kMs, 24);
        loop.op({"aten::add_", {edited.view(), loop.batch.view()}, {edited.written()}}, 2 * kMs, 25);
    });
    EXPECT_EQ(loop.found(), "");
}

TEST(SlowWatch, SameBatchOfEveryOtherStepIsNotTheSameInEach) {
    MadeTraining loop;
    MadeUp batches[2] = {{1, 2}, {3, 4}};
    MadeUp scaled{1, 2};
    for (int i = 0; i < 16; ++i) {
        loop.forward();
        loop.op({"aten::mul", {batches[i % 2].view()}, {scaled.returned()}}, 5 * kMs, 26);
        loop.step();
    }
    EXPECT_EQ(loop.found(), "");
}

TEST(SlowWatch, OptimizerOfManySmallOpsIsAFinding) {
    MadeTraining loop;
    int large = 0;
    const auto update = [&](const char* op, int64_t ns) {
        loop.forward();
        loop.watch.optimizer_begins(5);
        for (int i = 0; i < 100; ++i) {
            MadeLoop::now += 4000;  // Python
            loop.update(op, ns, 27);
        }
        for (int i = 0; i < large; ++i) loop.update("aten::mul_", kMs, 27);
        loop.watch.optimizer_ends();
        loop.watch.steps_are(++loop.ended);
    };
    for (int i = 0; i < 12; ++i) update("aten::add_", 2000);
    ASSERT_EQ(loop.found(), "NP106:5");
    EXPECT_EQ(loop.run().findings[0].measured,
              "100 small ops a step, `step()` spends 600 us of 10.6 ms (5.7 %) on them");
    large = 5;
    for (int i = 0; i < 400; ++i) update("aten::add_", 2000);
    EXPECT_EQ(loop.run().findings.at(0).measured,
              "100 small ops a step, `step()` spends 600 us of 15.6 ms (3.8 %) on them");
    for (int i = 0; i < 400; ++i) update("aten::_foreach_add_", 2000);
    EXPECT_EQ(loop.found(), "");
    for (int i = 0; i < 400; ++i) update("aten::add_", 50000);
    EXPECT_EQ(loop.found(), "") << "these take longer than calling them does";
}

/// As LBFGS and Lightning call it; `forward` and many small ops of its backward pass run inside of `step`.
void step_with_closure(MadeTraining& loop, const std::function<void()>& forward, int updates) {
    MadeUp gradient{1, 2};
    loop.watch.optimizer_begins(5);
    forward();
    loop.graph_task = 7;
    for (int i = 0; i < 100; ++i) loop.op({"aten::mm", {gradient.view()}, {gradient.returned()}}, 2000, 28);
    loop.graph_task = -1;
    for (int i = 0; i < updates; ++i) loop.update("aten::add_", 2000, 27);
    loop.watch.optimizer_ends();
    loop.watch.steps_are(++loop.ended);
}

TEST(SlowWatch, ClosureIsNotTheOptimizer) {
    MadeTraining loop;
    for (int i = 0; i < 12; ++i)
        step_with_closure(
            loop, [&] { loop.forward(); }, 1);
    EXPECT_EQ(loop.found(), "");
    EXPECT_EQ(loop.run().steps, 10);
    for (int i = 0; i < 400; ++i)
        step_with_closure(
            loop, [&] { loop.forward(); }, 100);
    EXPECT_EQ(loop.found(), "") << "the time of `step` holds the closure's";
}

TEST(SlowWatch, ClosureIsLookedAtAsAnyOtherCode) {
    MadeTraining loop;
    MadeUp source{1, 2}, table{1, 2};
    Words wide({1, 2}, DType::Float64);
    const auto forward = [&] {
        loop.forward();
        loop.op({"aten::cos", {source.view()}, {table.returned()}}, 2 * kMs, 35);
        wide.words[0] += 1;
        loop.op({"aten::index", {}, {wide.returned()}}, kMs, 36);
    };
    for (int i = 0; i < 12; ++i) step_with_closure(loop, forward, 1);
    EXPECT_EQ(loop.found(), "NP105:35 NP103:36");
}

TEST(SlowWatch, OpsThatAreIgnoredAreLeftOut) {
    MadeTraining loop;
    MadeUp source{1, 2}, table{1, 2};
    loop.steps(12, [&] {
        loop.forward();
        loop.ignored = true;
        loop.op({"aten::cos", {source.view()}, {table.returned()}}, 5 * kMs, 34);
        loop.ignored = false;
    });
    EXPECT_EQ(loop.found(), "");
}

TEST(SlowWatch, ThreadsThatDoNotTrainAreLeftOut) {
    MadeTraining loop;
    MadeUp source{1, 2}, table{1, 2};
    const MadeUpOp cos("aten::cos", {source.view()}, {table.returned()});
    loop.steps(12, [&] {
        loop.forward();
        std::thread([&] { loop.op(cos, 5 * kMs, 33); }).join();
    });
    EXPECT_EQ(loop.found(), "");
}

TEST(SlowWatch, WhatNumsanDoesOnOtherThreadsIsNoneOfAStepsTime) {
    MadeTraining loop;
    MadeUp source{1, 2}, table{1, 2};
    const MadeUpOp cos("aten::cos", {source.view()}, {table.returned()});
    loop.steps(12, [&] {
        loop.forward();
        std::thread([&] {
            loop.own = 5 * kMs;
            loop.op(cos, 0, 33);
            loop.own = 0;
        }).join();
    });
    EXPECT_NEAR(loop.run().step_s, 15.1e-3, 1e-6)
        << "the forward pass, the update, and what the clock went on meanwhile";
}

TEST(SlowWatch, WhereSeveralThreadsEndStepsNothingIsSaid) {
    MadeTraining loop;
    loop.steps(12, [&] {
        MadeLoop::now += 50 * kMs;
        loop.forward();
    });
    std::thread([&] { loop.step(); }).join();
    EXPECT_EQ(loop.found(), "");
    ASSERT_EQ(loop.run().not_measured.size(), 1u);
    EXPECT_EQ(loop.run().not_measured[0], "steps: several threads end them");
}

TEST(SlowWatch, ForkedChildBeginsAgain) {
    MadeTraining loop;
    loop.steps(12, [&] {
        MadeLoop::now += 50 * kMs;
        loop.forward();
    });
    Words wide({1, 2}, DType::Float64);
    loop.watch.leaf(wide.view());  // float64 is meant in the parent
    loop.watch.begin_child();
    EXPECT_EQ(loop.run().steps, 0);
    loop.steps(12, [&] { loop.forward(); });
    EXPECT_EQ(loop.found(), "");
    EXPECT_EQ(loop.run().steps, 10);
    loop.steps(64, [&] {
        loop.forward();
        loop.op({"aten::cos", {wide.view()}, {wide.view(kReturned)}}, 9 * kMs, 12);
    });
    EXPECT_EQ(loop.found(), "NP103:12") << "what the parent's parameters are says nothing of the child's";
}

TEST(SlowWatch, OneLineOfManyCallersIsOneFinding) {
    MadeTraining loop;
    MadeUp source{1, 2}, table{1, 2};
    for (StackId caller = 100; caller < 112; ++caller)
        loop.stacks.stacks[caller] = {{"/home/me/model.py", "forward", 4, nullptr, false},
                                      {"/home/me/train.py", "main", static_cast<int>(caller), nullptr, false}};
    loop.steps(12, [&] {
        loop.forward();
        for (StackId caller = 100; caller < 112; ++caller)
            loop.op({"aten::cos", {source.view()}, {table.returned()}}, kMs / 10, caller);
    });
    ASSERT_EQ(loop.found(), "NP105:4") << "each of them alone takes less than 2 %";
    EXPECT_EQ(loop.run().findings[0].count, 12);
}

}  // namespace
}  // namespace numsan
