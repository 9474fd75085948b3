// Whether a check of a program raised an exception that the program caught, by the lines of two stacks.
#include "host/session/check_flow.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace numsan {
namespace {

/// A program; lines are named by marks: `# check`, `# next`, ...
class CheckFlow : public testing::Test {
  protected:
    void SetUp() override { path_ = testing::TempDir() + "numsan_flow_" + std::to_string(getpid()) + ".py"; }
    void TearDown() override { std::remove(path_.c_str()); }

    void program(const std::string& text) {
        text_ = text;
        std::ofstream(path_) << text;
    }
    SourceFrame at(const std::string& mark, const char* function = "<module>") const {
        const size_t found = text_.find("# " + mark + "\n");
        EXPECT_NE(found, std::string::npos) << mark;
        return {path_, function, 1 + static_cast<int>(std::count(text_.begin(), text_.begin() + long(found), '\n'))};
    }
    AfterCheck flow(const std::string& next) const { return after_check({at("check")}, {at(next)}); }

  private:
    std::string path_, text_;
};

/// STATEMENT is the check; of what follows it the loop has a backward().
std::string loop(const std::string& check, const std::string& handler = "except ArithmeticError:\n        continue\n") {
    return "for x in batches:\n    try:\n        loss = model(x)  # top\n        " + check +
           "        loss.backward()  # learn\n    " + handler + "    log(loss)  # after\nscore()  # end\n";
}

TEST_F(CheckFlow, LoopThatHasComeAroundWithoutLearning) {
    for (const char* check : {
             "assert torch.isfinite(loss)  # check\n",
             "if torch.isnan(loss):  # check\n            raise FloatingPointError('loss')\n",
             "if torch.isnan(loss): raise FloatingPointError  # check\n",
             "if torch.isnan(loss):  # check\n            raise ValueError(\n                'loss'\n            )\n",
             "if (step > 0 and\n                not torch.isfinite(loss)):  # check\n            raise "
             "errors.NaNLoss()\n",
             "if torch.isfinite(loss):  # check\n            good += 1\n        else:\n            raise "
             "TrainingDiverged\n",
             "ok = bool(torch.isfinite(loss))  # check\n        count += 1\n        if not ok:\n            raise "
             "ValueError()\n",
         }) {
        program(loop(check));
        EXPECT_EQ(flow("top"), AfterCheck::Raised) << check;
        EXPECT_EQ(flow("learn"), AfterCheck::WentOn) << check;
        EXPECT_EQ(flow("after"), AfterCheck::WentOn) << check;
        EXPECT_EQ(flow("check"), AfterCheck::Within) << check;
    }
}

TEST_F(CheckFlow, ChecksThatRaiseNoErrorSayNothing) {
    for (const char* check : {
             "if torch.isnan(loss): continue  # check\n",
             "if not torch.isfinite(loss):  # check\n            skipped += 1\n            continue\n",
             "if torch.isnan(loss):  # check\n            raise StopIteration\n",
             "if torch.isnan(loss):  # check\n            raise optuna.TrialPruned()\n",
             "if torch.isnan(loss):  # check\n            raise\n",
             "if torch.isnan(loss):  # check\n            print('nan')\n",
             "worst = max(worst, float(loss))  # check\n",
             "ok = bool(torch.isfinite(loss))  # check\n        if not okay:\n            raise ValueError()\n",
         }) {
        program(loop(check));
        EXPECT_EQ(flow("top"), AfterCheck::WentOn) << check;
    }
}

TEST_F(CheckFlow, HandlersShowIt) {
    const char* check = "assert torch.isfinite(loss)  # check\n";
    program(loop(check, "except AssertionError:\n        shrink(rate)  # handler\n"));
    EXPECT_EQ(flow("handler"), AfterCheck::Raised);
    EXPECT_EQ(flow("after"), AfterCheck::Raised) << "the rest of the try was left out";
    EXPECT_EQ(flow("learn"), AfterCheck::WentOn);
    program(loop(check, "except AssertionError as e:\n        save(e)  # handler\n        raise\n"));
    EXPECT_EQ(flow("top"), AfterCheck::WentOn) << "it is raised again";
    program(loop(check, "finally:\n        done()  # handler\n"));
    EXPECT_EQ(flow("top"), AfterCheck::WentOn) << "nothing catches it";
    program(loop(check, "except AssertionError: break\n"));
    EXPECT_EQ(flow("end"), AfterCheck::Raised);
}

TEST_F(CheckFlow, WithoutLearningAfterItNothingIsKnown) {
    program(
        "for x in batches:\n    try:\n        y = f(x)  # top\n        assert torch.isfinite(y)  # check\n"
        "    except AssertionError:\n        continue\n    best = max(best, y)  # after\n");
    EXPECT_EQ(flow("top"), AfterCheck::WentOn) << "the loop may have come around by itself";
    EXPECT_EQ(flow("after"), AfterCheck::WentOn);
}

TEST_F(CheckFlow, AFunctionOfItsOwnRaises) {
    program(
        "def finite(x):\n    return bool(torch.isfinite(x).all())  # check\n"
        "def guard(x):\n    if not finite(x):  # guard\n        raise NanError()\n    done(x)  # guarded\n"
        "def step(x):\n    loss = model(x)  # model\n    guard(loss)  # call\n    loss.backward()  # learn\n"
        "for x in batches:\n    try:\n        step(x)  # step\n    except NanError:\n        continue\n"
        "    log()  # after\n");
    const std::vector<SourceFrame> check{at("check", "finite"), at("guard", "guard"), at("call", "step"), at("step")};
    EXPECT_EQ(after_check(check, {at("model", "step"), at("step")}), AfterCheck::Raised);
    EXPECT_EQ(after_check(check, {at("learn", "step"), at("step")}), AfterCheck::WentOn);
    EXPECT_EQ(after_check(check, {at("guarded", "guard"), at("call", "step"), at("step")}), AfterCheck::WentOn);
    EXPECT_EQ(after_check(check, {at("guard", "guard"), at("call", "step"), at("step")}), AfterCheck::Within);
    EXPECT_EQ(after_check(check, {at("after")}), AfterCheck::WentOn);
}

TEST_F(CheckFlow, AFunctionThatCatchesAndReturns) {
    program(
        "def step(x):\n    try:\n        loss = model(x)  # model\n        assert loss.isfinite()  # check\n"
        "        loss.backward()  # learn\n    except AssertionError:\n        return None\n    return loss\n"
        "for x in batches:\n    x = f(x)  # top\n    step(x)  # step\n");
    const std::vector<SourceFrame> check{at("check", "step"), at("step")};
    EXPECT_EQ(after_check(check, {at("top")}), AfterCheck::Raised);
    EXPECT_EQ(after_check(check, {at("model", "step"), at("step")}), AfterCheck::Raised);
    EXPECT_EQ(after_check(check, {at("learn", "step"), at("step")}), AfterCheck::WentOn);
}

TEST_F(CheckFlow, WhatCannotBeReadSaysNothing) {
    program(loop("assert torch.isfinite(loss)  # check\n"));
    EXPECT_EQ(after_check({}, {at("top")}), AfterCheck::WentOn);
    EXPECT_EQ(after_check({at("check")}, {}), AfterCheck::WentOn);
    SourceFrame gone = at("check");
    gone.file = "/nowhere/at/all.py";
    EXPECT_EQ(after_check({gone}, {gone}), AfterCheck::WentOn);
    SourceFrame beyond = at("check");
    beyond.line = 1000;
    EXPECT_EQ(after_check({beyond}, {at("top")}), AfterCheck::WentOn);
    EXPECT_EQ(after_check(std::vector<SourceFrame>(64, at("check")), {at("top")}), AfterCheck::WentOn) << "it was cut";
    EXPECT_EQ(after_check({at("check")}, {at("top", "other")}), AfterCheck::WentOn) << "another thread's function";
}

}  // namespace
}  // namespace numsan
