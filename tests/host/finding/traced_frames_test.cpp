// Stacks of generated code with the frames that it was made from.
#include "host/finding/traced_frames.h"

#include <gtest/gtest.h>

namespace numsan {
namespace {

constexpr char kGenerated[] = "<eval_with_key>.1";
constexpr char kCompiler[] = "/env/site-packages/torch/_dynamo/eval_frame.py";
const PlaceFinder kPlaces{"/env/site-packages/torch"};

SourceFrame traced(const char* file, const char* function, int line) {
    return {file, function, line, nullptr, false, true};
}

std::vector<std::string> shown(const std::vector<SourceFrame>& stack) {
    std::vector<std::string> lines;
    for (const SourceFrame& frame : stack)
        lines.push_back(frame.file.substr(frame.file.rfind('/') + 1) + ":" + std::to_string(frame.line) + " " +
                        frame.function);
    return lines;
}

using Lines = std::vector<std::string>;

TEST(TracedFrames, StandInFrontOfTheGeneratedFrameAndForTheCompiledFunction) {
    int graph = 0, model = 0;
    const std::vector<SourceFrame> stack = {{kGenerated, "forward", 7, nullptr},
                                            {"/env/site-packages/torch/nn/modules/module.py", "_call_impl", 9, &graph},
                                            {"/me/net.py", "Net.forward", 3, nullptr},
                                            {kCompiler, "compile_wrapper", 5, &model},
                                            {"/me/train.py", "main", 40, nullptr}};
    const LiveNames::Traced lines = {
        {{kGenerated, 7}, {traced("/me/blocks.py", "Block.forward", 12), traced("/me/net.py", "forward", 6)}}};
    const std::vector<SourceFrame> whole = with_traced_frames(stack, lines, kPlaces);
    EXPECT_EQ(shown(whole), (Lines{"blocks.py:12 Block.forward", "net.py:6 Net.forward", "<eval_with_key>.1:7 forward",
                                   "module.py:9 _call_impl", "eval_frame.py:5 compile_wrapper", "train.py:40 main"}));
    EXPECT_EQ(whole[3].self, nullptr) << "the graph is no module of the program's";
    EXPECT_EQ(whole[4].self, &model);
}

TEST(TracedFrames, AnotherCallerStays) {
    const LiveNames::Traced lines = {{{kGenerated, 7}, {traced("/me/net.py", "forward", 6)}}};
    for (const SourceFrame& caller :
         {SourceFrame{"/me/train.py", "forward", 4, nullptr}, SourceFrame{"/me/net.py", "run", 4, nullptr},
          SourceFrame{"/me/net.py", "forward", 8, nullptr}}) {
        const auto whole = with_traced_frames({{kGenerated, "forward", 7, nullptr}, caller}, lines, kPlaces);
        EXPECT_EQ(whole.size(), 3u) << caller.file << ":" << caller.line;
    }
}

TEST(TracedFrames, OfALineThatNobodyKnowsThereAreNone) {
    const LiveNames::Traced lines = {{{kGenerated, 7}, {traced("/me/net.py", "forward", 6)}}};
    EXPECT_EQ(with_traced_frames({{kGenerated, "forward", 8, nullptr}}, lines, kPlaces).size(), 1u);
    EXPECT_EQ(with_traced_frames({{kGenerated, "forward", 7, nullptr}}, {}, kPlaces).size(), 1u);
}

TEST(TracedFrames, ThoseByWhichAGraphIsRunAgainGo) {
    constexpr char kOwn[] = "/env/site-packages/torch/_inductor/compile_fx.py";
    const std::vector<SourceFrame> stack = {
        {kGenerated, "forward", 7, nullptr},
        {kOwnCode, "wait_for_compile_fx.<locals>.mend.<locals>.Region.run", 30, nullptr},
        {kOwn, "wait_for_compile_fx.<locals>.mend.<locals>.numsan_runs_region", 9, nullptr},
        {kCompiler, "DisableContext.__call__.<locals>._fn", 5, nullptr},
        {kOwn, "wait_for_compile_fx.<locals>.mend.<locals>.with_looks.<locals>.numsan_region", 4, nullptr},
        {"/me/net.py", "Net.forward", 3, nullptr}};
    const LiveNames::Traced lines = {{{kGenerated, 7}, {traced("/me/net.py", "forward", 6)}}};
    EXPECT_EQ(shown(with_traced_frames(stack, lines, kPlaces)),
              (Lines{"net.py:6 Net.forward", "<eval_with_key>.1:7 forward"}));
    EXPECT_EQ(shown(with_traced_frames(stack, {}, kPlaces)),
              (Lines{"<eval_with_key>.1:7 forward", "net.py:3 Net.forward"}));
    const std::vector<SourceFrame> once(stack.begin() + 3, stack.end());
    EXPECT_EQ(shown(with_traced_frames(once, {}, kPlaces)),
              (Lines{"eval_frame.py:5 DisableContext.__call__.<locals>._fn", "net.py:3 Net.forward"}))
        << "an op that the compiled code called itself";
    const std::vector<SourceFrame> others = {{"/me/net.py", "numsan_region", 3, nullptr}};
    EXPECT_EQ(with_traced_frames(others, {}, kPlaces).size(), 1u) << "a function of the program's";
}

}  // namespace
}  // namespace numsan
