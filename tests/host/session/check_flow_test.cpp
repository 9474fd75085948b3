// Whether a check of a program raised an exception that the program caught, by the lines of two stacks.
#include "host/session/check_flow.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

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
    AfterCheck flow(const std::string& next) const { return flow({at("check")}, {at(next)}); }
    AfterCheck flow(const std::vector<SourceFrame>& check, const std::vector<SourceFrame>& next) const {
        PythonSources sources(std::time(nullptr) + 60);
        return after_check(check, next, sources);
    }

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
    EXPECT_EQ(flow(check, {at("model", "step"), at("step")}), AfterCheck::Raised);
    EXPECT_EQ(flow(check, {at("learn", "step"), at("step")}), AfterCheck::WentOn);
    EXPECT_EQ(flow(check, {at("guarded", "guard"), at("call", "step"), at("step")}), AfterCheck::WentOn);
    EXPECT_EQ(flow(check, {at("guard", "guard"), at("call", "step"), at("step")}), AfterCheck::Within);
    EXPECT_EQ(flow(check, {at("after")}), AfterCheck::WentOn);
}

TEST_F(CheckFlow, AFunctionThatCatchesAndReturns) {
    program(
        "def step(x):\n    try:\n        loss = model(x)  # model\n        assert loss.isfinite()  # check\n"
        "        loss.backward()  # learn\n    except AssertionError:\n        return None\n    return loss\n"
        "for x in batches:\n    x = f(x)  # top\n    step(x)  # step\n");
    const std::vector<SourceFrame> check{at("check", "step"), at("step")};
    EXPECT_EQ(flow(check, {at("top")}), AfterCheck::Raised);
    EXPECT_EQ(flow(check, {at("model", "step"), at("step")}), AfterCheck::Raised);
    EXPECT_EQ(flow(check, {at("learn", "step"), at("step")}), AfterCheck::WentOn);
}

TEST_F(CheckFlow, StatementsOfSeveralLinesAroundTheCheck) {
    program(
        "for x in batches:\n    loss = a(x) + \\\n        b(x)\n    if torch.isinf(loss) or torch.isnan(loss):  # "
        "check\n"
        "        skipped += 1\n        continue\n    loss.backward()  # learn\n");
    EXPECT_EQ(flow("learn"), AfterCheck::WentOn);
    const char* guarded =
        "for x in batches:\n    try:\n        f(x)  # top\n        assert not torch.isnan(loss)  # check\n        "
        "total = "
        "loss + \\\n            penalty  # total\n        total.backward()  # learn\n    except AssertionError:\n"
        "        continue  # handler\n    log()  # after\n";
    program(guarded);
    EXPECT_EQ(flow("total"), AfterCheck::WentOn);
    EXPECT_EQ(flow("learn"), AfterCheck::WentOn);
    EXPECT_EQ(flow("top"), AfterCheck::Raised);
    EXPECT_EQ(flow("handler"), AfterCheck::Raised);
}

TEST_F(CheckFlow, ABranchThatMayGoOnElsewhereDoesNotAlwaysRaise) {
    for (const char* check : {
             "if not torch.isfinite(loss):  # check\n            bad += 1\n            if bad < 10: continue\n"
             "            raise ValueError('nan')\n",
             "if not torch.isfinite(loss):  # check\n            if not strict:\n                continue\n"
             "            raise ValueError('nan')\n",
         }) {
        program(loop(check));
        EXPECT_EQ(flow("top"), AfterCheck::WentOn) << check;
    }
}

TEST_F(CheckFlow, HandlersThatCatchNoErrorDoNotCatchIt) {
    const char* check = "assert torch.isfinite(loss)  # check\n";
    for (const char* handler : {"except KeyboardInterrupt:\n        continue\n",
                                "except (KeyboardInterrupt, SystemExit) as e:\n        continue\n"}) {
        program(loop(check, handler));
        EXPECT_EQ(flow("top"), AfterCheck::WentOn) << handler;
    }
    for (const char* handler : {"except:\n        continue\n", "except (KeyboardInterrupt, E):\n        continue\n"}) {
        program(loop(check, handler));
        EXPECT_EQ(flow("top"), AfterCheck::Raised) << handler;
    }
}

TEST_F(CheckFlow, BackwardUnderAConditionMayNotHaveBeenDue) {
    for (const char* learn :
         {"if step % 2: loss.backward()\n", "if step % 2:\n            loss.backward()\n",
          "if step < 3: continue\n        loss.backward()\n", "for one in losses:\n            one.backward()\n"}) {
        program(
            "for x in batches:\n    try:\n        loss = model(x)  # top\n        assert torch.isfinite(loss)  # "
            "check\n"
            "        " +
            std::string(learn) + "    except AssertionError:\n        continue\n");
        EXPECT_EQ(flow("top"), AfterCheck::WentOn) << learn;
    }
    program(
        "for x in batches:\n    try:\n        loss = model(x)  # top\n        assert torch.isfinite(loss)  # check\n"
        "        with scale(loss) as scaled:\n            scaled.backward()\n    except AssertionError:\n"
        "        continue\n");
    EXPECT_EQ(flow("top"), AfterCheck::Raised) << "a with is no condition";
}

TEST_F(CheckFlow, TheBranchOfACheckThatPasses) {
    program(
        loop("if torch.isfinite(loss):  # check\n            good(loss)  # passed\n        else:\n            "
             "raise TrainingDiverged\n"));
    EXPECT_EQ(flow("passed"), AfterCheck::WentOn);
    EXPECT_EQ(flow("top"), AfterCheck::Raised);
}

TEST_F(CheckFlow, TheSameCallGoesOn) {
    const std::string train =
        "def train():\n    for x in batches:\n        loss = model(x)  # top\n        assert loss.isfinite()  # check\n"
        "        loss.backward()\n";
    const std::vector<std::string> callers = {"try:\n    train()  # call\nexcept AssertionError:\n    pass\n",
                                              "while True:\n    try:\n        train()  # call\n    except "
                                              "AssertionError:\n        pass\n"};
    for (size_t again = 0; again < 2; ++again) {
        program(train + callers[again]);
        const AfterCheck shown = flow({at("check", "train"), at("call")}, {at("top", "train"), at("call")});
        EXPECT_EQ(shown, again == 0 ? AfterCheck::WentOn : AfterCheck::Raised);
    }
}

TEST_F(CheckFlow, AFileThatWasChangedMeanwhileIsNotWhatRuns) {
    program(loop("assert torch.isfinite(loss)  # check\n"));
    PythonSources sources(std::time(nullptr) - 3600);
    EXPECT_EQ(after_check({at("check")}, {at("top")}, sources), AfterCheck::WentOn);
}

TEST_F(CheckFlow, WhatCannotBeReadSaysNothing) {
    program(loop("assert torch.isfinite(loss)  # check\n"));
    EXPECT_EQ(flow({}, {at("top")}), AfterCheck::WentOn);
    EXPECT_EQ(flow({at("check")}, {}), AfterCheck::WentOn);
    SourceFrame gone = at("check");
    gone.file = "/nowhere/at/all.py";
    EXPECT_EQ(flow({gone}, {gone}), AfterCheck::WentOn);
    SourceFrame beyond = at("check");
    beyond.line = 1000;
    EXPECT_EQ(flow({beyond}, {at("top")}), AfterCheck::WentOn);
    EXPECT_EQ(flow(std::vector<SourceFrame>(64, at("check")), {at("top")}), AfterCheck::WentOn) << "it was cut";
    EXPECT_EQ(flow({at("check")}, {at("top", "other")}), AfterCheck::WentOn) << "another thread's function";
}

}  // namespace
}  // namespace numsan
