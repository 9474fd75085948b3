// Parts of torch, recognised by the frames of a stack.
#include "host/session/torch_frames.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <utime.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/host/verdict/fake_stacks.h"

namespace numsan {
namespace {

constexpr char kTorch[] = "/env/lib/python3.11/site-packages/torch";

SourceFrame python(const std::string& file, const std::string& function) {
    return {file, function, 12, nullptr, false};
}
SourceFrame torch(const std::string& file, const std::string& function) {
    return python(kTorch + ("/" + file), function);
}
SourceFrame native(const std::string& file, const std::string& function) { return {file, function, 12, nullptr, true}; }
SourceFrame main_program() { return python("/home/me/train.py", "main"); }

class TorchFramesTest : public testing::Test {
  protected:
    /// Innermost first; the program's own line is always the outermost.
    void on(std::vector<SourceFrame> stack) {
        stack.push_back(main_program());
        stacks.stacks[1] = std::move(stack);
    }
    FakeStacks stacks;
    TorchFrames frames{stacks};
};

TEST_F(TorchFramesTest, BackwardMakesItsFirstGradient) {
    on({torch("autograd/__init__.py", "_make_grads"), torch("autograd/__init__.py", "backward")});
    EXPECT_TRUE(frames.is_loss(1));
    on({torch("autograd/__init__.py", "backward"), torch("_tensor.py", "backward")});
    EXPECT_FALSE(frames.is_loss(1));
    on({python("/home/me/autograd.py", "_make_grads")});
    EXPECT_FALSE(frames.is_loss(1)) << "a function of the program's own by that name";
    on({torch("_tensor.py", "ones_like"), torch("autograd/__init__.py", "_make_grads")});
    EXPECT_FALSE(frames.is_loss(1)) << "only the innermost frame counts";
    on({});
    EXPECT_FALSE(frames.is_loss(1)) << "torch.ones_like() of the program's own";
}

TEST_F(TorchFramesTest, WhoCalledWhatASubclassAnswers) {
    on({torch("_ops.py", "__call__"), python("/home/me/wrapped.py", "Wrapped.__torch_dispatch__"),
        torch("autograd/__init__.py", "_make_grads")});
    EXPECT_TRUE(frames.is_loss(1));
    on({python("/home/me/wrapped.py", "__torch_dispatch__"), torch("_tensor.py", "ones_like"),
        torch("autograd/__init__.py", "_make_grads")});
    EXPECT_FALSE(frames.is_loss(1));
    on({python("/home/me/wrapped.py", "__torch_dispatch__")});
    EXPECT_FALSE(frames.is_loss(1));
    stacks.stacks[2] = {python("/home/me/wrapped.py", "__torch_dispatch__")};
    EXPECT_FALSE(frames.is_loss(2)) << "nobody is known to have called it";
}

TEST_F(TorchFramesTest, WithoutPythonAnyLossWillDo) {
    EXPECT_TRUE(frames.is_loss(0));
    EXPECT_TRUE(frames.is_loss(42)) << "a stack that nobody knows";
    on({native("/src/train.cpp", "main")});
    EXPECT_TRUE(frames.is_loss(1));
}

TEST_F(TorchFramesTest, LossScaler) {
    on({torch("amp/grad_scaler.py", "scale")});
    EXPECT_TRUE(frames.is_scaler(1));
    on({torch("amp/grad_scaler.py", "apply_scale")});
    EXPECT_TRUE(frames.is_scaler(1));
    on({torch("optim/sgd.py", "step"), torch("amp/grad_scaler.py", "step")});
    EXPECT_FALSE(frames.is_scaler(1)) << "the optimizer that a scaler steps is no scaler";
    on({native(std::string(kTorch) + "/amp/grad_scaler.py", "scale")});
    EXPECT_FALSE(frames.is_scaler(1));
    EXPECT_FALSE(frames.is_scaler(0));
    EXPECT_FALSE(frames.is_scaler(42));
}

TEST_F(TorchFramesTest, LoadingAnywhereOnTheStack) {
    on({torch("nn/modules/module.py", "_load_from_state_dict"), torch("nn/modules/module.py", "load"),
        torch("nn/modules/module.py", "load_state_dict")});
    EXPECT_TRUE(frames.is_loading(1));
    on({torch("optim/optimizer.py", "_process_value_according_to_param_policy"),
        torch("optim/optimizer.py", "load_state_dict")});
    EXPECT_TRUE(frames.is_loading(1));
    on({torch("nn/modules/module.py", "_call_impl")});
    EXPECT_FALSE(frames.is_loading(1));
    on({python("/home/me/model.py", "load_state_dict")});
    EXPECT_FALSE(frames.is_loading(1)) << "the program's own function";
    EXPECT_FALSE(frames.is_loading(42));
}

TEST_F(TorchFramesTest, InsideTheForwardOfAFunction) {
    on({python("/home/me/ops.py", "forward"), torch("autograd/function.py", "apply"),
        python("/home/me/model.py", "forward")});
    EXPECT_TRUE(frames.in_function(1));
    on({python("/home/me/ops.py", "apply")});
    EXPECT_FALSE(frames.in_function(1));
    on({torch("autograd/function.py", "once_differentiable")});
    EXPECT_FALSE(frames.in_function(1));
    EXPECT_FALSE(frames.in_function(42));
}

TEST_F(TorchFramesTest, LoopOfADataLoadersWorker) {
    const std::vector<SourceFrame> worker = {python("/home/me/data.py", "__getitem__"),
                                             torch("utils/data/_utils/fetch.py", "fetch"),
                                             torch("utils/data/_utils/worker.py", "_worker_loop"), main_program()};
    EXPECT_EQ(TorchFrames::worker_loop(worker), 2u);
    EXPECT_EQ(TorchFrames::worker_loop({main_program()}), 1u) << "size() when it is not there";
}

TEST_F(TorchFramesTest, TensorThatArrivesFromAnotherProcess) {
    EXPECT_TRUE(TorchFrames::arrives({torch("multiprocessing/reductions.py", "rebuild_tensor"), main_program()}));
    EXPECT_FALSE(TorchFrames::arrives({torch("multiprocessing/reductions.py", "reduce_tensor"), main_program()}));
    EXPECT_FALSE(TorchFrames::arrives({}));
}

TEST_F(TorchFramesTest, FileThatWasChangedSinceTheStartShowsNothingOfACheck) {
    const std::string file = testing::TempDir() + "numsan_check_" + std::to_string(getpid()) + ".py";
    std::ofstream(file) << "for batch in batches:\n"
                           "    try:\n"
                           "        assert loss.isfinite()\n"
                           "        loss.backward()\n"
                           "    except AssertionError:\n"
                           "        continue\n";
    stacks.stacks[1] = {{file, "<module>", 3, nullptr, false}};
    stacks.stacks[2] = {{file, "<module>", 1, nullptr, false}};
    const auto written = [&](std::time_t when) {
        const utimbuf times{when, when};
        EXPECT_EQ(utime(file.c_str(), &times), 0);
    };
    written(std::time(nullptr) + 3600);
    EXPECT_EQ(frames.after_check(1, 2), AfterCheck::WentOn);
    written(1000);
    EXPECT_EQ(TorchFrames(stacks).after_check(1, 2), AfterCheck::Raised);
    std::remove(file.c_str());
}

TEST_F(TorchFramesTest, ClassBeforeTheNameDoesNotMatter) {
    on({torch("nn/modules/module.py", "Module.load_state_dict")});
    EXPECT_TRUE(frames.is_loading(1));
    on({torch("autograd/function.py", "Function.apply")});
    EXPECT_TRUE(frames.in_function(1));
    on({torch("autograd/function.py", "Function.reapply")});
    EXPECT_FALSE(frames.in_function(1));
}

TEST_F(TorchFramesTest, PlaceIsThatOfTheLinesNotOfTheModules) {
    const int one = 0, other = 0;
    const auto frame = [](int line, const void* self) {
        return SourceFrame{"/home/me/model.py", "Block.forward", line, self, false};
    };
    stacks.stacks[1] = {frame(7, &one), main_program()};
    stacks.stacks[2] = {frame(7, &other), main_program()};
    stacks.stacks[3] = {frame(8, &one), main_program()};
    stacks.stacks[4] = {main_program(), frame(7, &one)};
    EXPECT_EQ(frames.place(1), frames.place(2));
    EXPECT_NE(frames.place(1), frames.place(3));
    EXPECT_NE(frames.place(1), frames.place(4));
    EXPECT_EQ(frames.source(), &stacks);
}

}  // namespace
}  // namespace numsan
