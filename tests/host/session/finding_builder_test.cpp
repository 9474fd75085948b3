// From an escaped birth to a finding: places, names, titles, fingerprints.
#include "host/session/finding_builder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "host/cause/title.h"
#include "host/finding/mechanisms.h"
#include "tests/host/verdict/fake_stacks.h"
#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

const char* kTorchFile = "/env/site-packages/torch/autograd/graph.py";

class Builder : public testing::Test {
  protected:
    Builder() {
        stacks.stacks[1] = {{"/env/site-packages/torch/nn/functional.py", "log", 3, nullptr, false},
                            {"/home/me/model.py", "forward", 12, &head, false},
                            {"/home/me/train.py", "main", 40, nullptr, false}};
        stacks.stacks[2] = {{kTorchFile, "_engine_run_backward", 9, nullptr, false},
                            {"/env/site-packages/torch/_tensor.py", "backward", 9, nullptr, false},
                            {"/home/me/train.py", "main", 44, nullptr, false}};
        stacks.stacks[3] = {{"/home/me/function.py", "backward", 21, nullptr, false},
                            {kTorchFile, "_engine_run_backward", 9, nullptr, false},
                            {"/home/me/train.py", "main", 44, nullptr, false}};
        stacks.live.modules[&head] = "model.head";
        stacks.live.tensors[&weight] = {"model.head.weight", LiveNames::TensorName::Role::Parameter};
        escaped.birth.kind = kNaN;
        escaped.birth.op = "aten::log";
        escaped.birth.mechanism = Mechanism::DOM;
        escaped.birth.stack = 1;
        escaped.birth.seq = OpSeq{5};
        escaped.birth.step = 2;
        escaped.into = EscapeInto::Loss;
        TensorFact output;
        output.name = "output[0]";
        output.health = CpuScanner().health(MadeUp{kNan, 1, kNan}.view());
        escaped.birth.outputs.push_back(output);
    }
    Finding build() { return build_finding(escaped, stacks, ranges, stacks.live, places); }
    std::string title(bool first = true) {
        Finding finding = build();
        finding.first = first;
        return title_of(finding);
    }

    int head = 0, weight = 0;
    FakeStacks stacks;
    OpenRanges ranges;
    PlaceFinder places{"/env/site-packages/torch"};
    EscapedBirth escaped;
};

TEST_F(Builder, KernelsOfTheRegionThatFuseTheOpAreNamed) {
    stacks.stacks[5] = {{"<eval_with_key>.7", "forward", 4, nullptr, false}};
    stacks.live.kernels["<eval_with_key>.7"] = {{"cpp_fused_add_log_0", "/cache/a.py", 12, false},
                                                {"cpp_fused_exp_log1p_1", "/cache/a.py", 60, false},
                                                {"cpp_fused_div_log_0", "/cache/b.py", 12, true}};
    escaped.birth.stack = 5;
    const StackFrame forward = build().stack.back();
    EXPECT_EQ(forward.kind + " " + forward.function + " " + *forward.file, "compiled cpp_fused_add_log_0 /cache/a.py");
    EXPECT_EQ(forward.line, 12);
    std::vector<LiveNames::GeneratedKernel>& all = stacks.live.kernels["<eval_with_key>.7"];
    all.insert(all.end(), 2, all[0]);
    EXPECT_EQ(build().stack.size(), 4u) << "one of three";
    all.insert(all.end(), 1, all[0]);
    EXPECT_EQ(build().stack.size(), 1u) << "one of four is not known";
    all = {{"cpp_fused__log_softmax_add_0", "/cache/a.py", 12, false},
           {"cpp_fused_expand_mm_0", "/cache/a.py", 60, false}};
    EXPECT_EQ(build().stack.size(), 1u) << "a part of another op's name";
    escaped.birth.op = "aten::mm";
    EXPECT_EQ(build().stack.size(), 1u) << "it prepares an operand: the product is a library's";
    all = {{"cpp_fused_div_log_0", "/cache/b.py", 12, true}};
    escaped.birth.op = "aten::div";
    EXPECT_NE(build().stack.back().kind, kKernelFrame) << "of the backward pass alone";
    escaped.birth.node = "LogBackward0";
    escaped.birth.stack = 2;
    escaped.birth.has_forward = true;
    escaped.birth.forward_op = "aten::log";
    escaped.birth.forward_stack = 5;
    EXPECT_EQ(build().stack.back().function, "cpp_fused_div_log_0");
}

TEST_F(Builder, RangesStandBehindTheFrames) {
    EXPECT_EQ(build().stack.size(), 3u);
    ThreadRanges thread;
    ranges.take(thread, {RangeEvent::Kind::Start, false, 1, "epoch 3"});
    ranges.take(thread, {RangeEvent::Kind::Push, false, 0, "decoder/attn"});
    escaped.birth.ranges = ranges.path(thread);
    ranges.take(thread, {RangeEvent::Kind::Pop, false, 0, ""});
    const std::vector<StackFrame> stack = build().stack;
    ASSERT_EQ(stack.size(), 5u);
    EXPECT_EQ(stack[3].kind + " " + stack[3].function, "nvtx decoder/attn");
    EXPECT_EQ(stack[4].kind + " " + stack[4].function, "nvtx epoch 3");
    EXPECT_FALSE(stack[4].file.has_value());
}

TEST_F(Builder, Forward) {
    escaped.impl = &weight;
    escaped.into = EscapeInto::Parameter;
    escaped.step = 3;
    escaped.seq = OpSeq{9};
    const Finding f = build();
    EXPECT_EQ(f.kind, FindingKind::NaN);
    EXPECT_EQ(f.op, "aten::log");
    EXPECT_EQ(f.step, 2);
    EXPECT_EQ(f.seq, OpSeq{5});
    ASSERT_TRUE(f.location.has_value());
    EXPECT_EQ(f.location->file, "/home/me/model.py");
    EXPECT_EQ(f.location->line, 12);
    EXPECT_EQ(f.user_location->function, "forward");
    EXPECT_EQ(f.module, "model.head");
    EXPECT_EQ(f.stack.size(), 3u);
    EXPECT_FALSE(f.forward.has_value());
    EXPECT_FALSE(f.backward_location.has_value());
    EXPECT_EQ(f.escape.into, EscapeInto::Parameter);
    EXPECT_EQ(f.escape.name, "model.head.weight");
    EXPECT_EQ(f.escape.step, 3);
    EXPECT_EQ(f.escape.seq, OpSeq{9});
    EXPECT_FALSE(f.help.empty());
}

/// The generated code is called by what stands on the line of its `def`.
class BuilderOfTraced : public Builder {
  protected:
    BuilderOfTraced() {
        stacks.stacks[1] = {{"<eval_with_key>.1", "forward", 7, nullptr, false},
                            {"/home/me/model.py", "Net.forward", 10, nullptr, false},
                            {"/env/site-packages/torch/nn/modules/module.py", "_call_impl", 3, &model, false},
                            {"/home/me/train.py", "main", 40, nullptr, false}};
        stacks.stacks[4] = {{"<eval_with_key>.3", "forward", 5, nullptr, false},
                            {kTorchFile, "_engine_run_backward", 9, nullptr, false},
                            {"/home/me/train.py", "main", 44, nullptr, false}};
        stacks.live.modules[&model] = "model";
        stacks.live.modules[&other] = "other.head";
        const SourceFrame line{"/home/me/model.py", "Net.forward", 12, &head, false, true};
        stacks.live.traced[{"<eval_with_key>.1", 7}] = {line};
        stacks.live.traced[{"<eval_with_key>.3", 5}] = {line};
    }
    int model = 0, other = 0;
};

TEST_F(BuilderOfTraced, AForwardIsAtTheLineThatTheCodeWasMadeFrom) {
    const Finding f = build();
    ASSERT_TRUE(f.location.has_value());
    EXPECT_EQ(f.location->line, 12);
    EXPECT_EQ(f.module, "model.head");
    EXPECT_EQ(f.stack.size(), 4u);
}

TEST_F(BuilderOfTraced, AModuleThatSharesTheCodeIsTheOneThatWasCalled) {
    stacks.live.traced.begin()->second.front().self = &other;
    EXPECT_EQ(build().module, "model");
}

TEST_F(BuilderOfTraced, WhatTorchMadeTheBackwardOfIsNoBackwardOfTheProgram) {
    escaped.birth.node = "CompiledFunctionBackward";
    escaped.birth.phase = Phase::Backward;
    escaped.birth.stack = 4;
    const Finding alone = build();
    ASSERT_TRUE(alone.location.has_value() && alone.backward_location.has_value());
    EXPECT_EQ(alone.location->line, 12);
    EXPECT_EQ(alone.backward_location->line, 44);
    escaped.birth.has_forward = true;
    escaped.birth.forward_op = "aten::addmm";
    escaped.birth.forward_stack = 2;
    const Finding f = build();
    ASSERT_TRUE(f.location.has_value() && f.forward.has_value() && f.forward->location.has_value());
    EXPECT_EQ(f.location->line, 12);
    EXPECT_EQ(f.forward->location->line, 12) << "the line of this op, not of the last one of the compiled forward";
}

TEST_F(Builder, WhatAModuleWithParametersComputesLastIsTheModels) {
    escaped.birth.op = "aten::div";
    escaped.birth.mechanism = Mechanism::DIV0;
    Features& f = escaped.birth.features;
    f.op = "div";
    f.reduction = "std";
    f.touched = true;
    f.operand_touched = true;
    f.loss_known = true;
    f.after_parameters = true;
    const CategoryId model{"N7"}, loss{"N4"};
    EXPECT_EQ(build().category.id, model);
    stacks.live.tensors.clear();
    EXPECT_EQ(build().category.id, loss) << "a module without parameters is a loss";
}

TEST_F(Builder, BufferThatNothingWroteIsBadFromTheStart) {
    escaped.birth.op = "aten::empty";
    escaped.birth.mechanism = Mechanism::UNINIT;
    escaped.birth.holder = &weight;
    EXPECT_EQ(build().phase, Phase::Forward);
    stacks.live.tensors[&weight].role = LiveNames::TensorName::Role::Buffer;
    EXPECT_EQ(build().phase, Phase::Load);
    EXPECT_EQ(build().category.id, CategoryId{"N6"});
}

TEST_F(Builder, BackwardPointsAtTheForwardLine) {
    escaped.birth.stack = 2;
    escaped.birth.node = "LogBackward0";
    escaped.birth.op = "aten::div";
    escaped.birth.has_forward = true;
    escaped.birth.forward_op = "aten::log";
    escaped.birth.forward_stack = 1;
    const Finding f = build();
    ASSERT_TRUE(f.location.has_value());
    EXPECT_EQ(f.location->file, "/home/me/model.py");
    EXPECT_EQ(f.module, "model.head");
    ASSERT_TRUE(f.backward_location.has_value());
    EXPECT_EQ(f.backward_location->line, 44);
    ASSERT_TRUE(f.forward.has_value());
    EXPECT_EQ(f.forward->op, "aten::log");
    EXPECT_EQ(f.forward->node, "LogBackward0");
    EXPECT_EQ(f.stack.front().kind, "autograd");
    EXPECT_EQ(f.stack.front().function, "LogBackward0");
}

TEST_F(Builder, BackwardOfAFunctionPointsInsideIt) {
    escaped.birth.stack = 3;
    escaped.birth.node = "MyFunctionBackward";
    const Finding f = build();
    ASSERT_TRUE(f.location.has_value());
    EXPECT_EQ(f.location->file, "/home/me/function.py");
    EXPECT_EQ(f.backward_location->line, 44);
    EXPECT_FALSE(f.forward.has_value());
}

TEST_F(Builder, NothingIsKnownOfAnEmptyStack) {
    escaped.birth.stack = 0;
    const Finding f = build();
    EXPECT_FALSE(f.location.has_value());
    EXPECT_FALSE(f.module.has_value());
    EXPECT_EQ(f.fingerprint.size(), 12u);
}

TEST_F(Builder, Titles) {
    EXPECT_EQ(title(), "first NaN of this run: `aten::log` left its domain in 2 of 3 values");
    EXPECT_EQ(title(false), "another NaN: `aten::log` left its domain in 2 of 3 values");
    escaped.birth.kind = kPosInf;
    escaped.birth.outputs.clear();
    escaped.birth.mechanism = Mechanism::OVF;
    EXPECT_EQ(title(), "first infinity of this run: `aten::log` overflowed");
    EXPECT_EQ(build().kind, FindingKind::Inf);
    escaped.birth.has_forward = true;
    escaped.birth.forward_op = "aten::norm";
    escaped.birth.mechanism = Mechanism::SING;
    EXPECT_EQ(title(), "first infinity of this run: the backward of `aten::norm` divided by zero");
}

TEST_F(Builder, TitlesOfFiniteValues) {
    escaped.birth.kind = 0;
    escaped.birth.mechanism = Mechanism::PREC;
    EXPECT_EQ(title(), "first underflow of this run: `aten::log` made updates too small for the type to hold");
    EXPECT_EQ(build().kind, FindingKind::Underflow);
    escaped.birth.near_overflow = true;
    escaped.birth.features.dtype = DType::Float8E4M3Fn;
    EXPECT_EQ(title(),
              "first saturation of this run: `aten::log` wrote the largest float8_e4m3fn in place of larger values");
    EXPECT_EQ(build().kind, FindingKind::Overflow);
    escaped.birth.mechanism = Mechanism::OVF;
    EXPECT_EQ(title(false), "another near overflow: `aten::log` made values close to the largest float8_e4m3fn");
}

TEST_F(Builder, TitleOfEveryMechanismSaysSomething) {
    for (const MechanismInfo& m : kMechanisms) {
        escaped.birth.mechanism = m.value;
        EXPECT_NE(title().find("`aten::log` "), std::string::npos) << m.id;
        EXPECT_EQ(build().mechanism, m.value);
    }
}

TEST_F(Builder, FingerprintIsOfThePlaceAndNotOfTheTime) {
    const std::string before = build().fingerprint;
    escaped.birth.seq = OpSeq{500};
    escaped.birth.step = 60;
    const std::string place = place_of_finding(build());
    stacks.live.modules.begin()->second = "model.tail";  // the same line, of another layer
    EXPECT_NE(build().fingerprint, before);
    EXPECT_EQ(place_of_finding(build()), place) << "layers of one line are one finding";
    stacks.live.modules.begin()->second = "model.head";
    EXPECT_EQ(build().fingerprint, before);
    escaped.birth.op = "aten::sqrt";
    EXPECT_NE(build().fingerprint, before);
}

TEST_F(Builder, FingerprintOfACellIsThatOfItsLine) {
    const auto of_cell = [&](const char* file, int number) {
        stacks.stacks[1][1].file = file;
        PlaceFinder learned = places;
        learned.learn({{{{file, 12}, "forward"}, {std::string(11, '\n') + "log(x)", number}}});
        return build_finding(escaped, stacks, ranges, stacks.live, learned);
    };
    const Finding first = of_cell("/tmp/ipykernel_1/2.py", 3), again = of_cell("/tmp/ipykernel_9/8.py", 5);
    ASSERT_EQ(first.location->cell, 3);
    EXPECT_EQ(first.fingerprint, again.fingerprint) << "the cell was edited elsewhere, and run again";
}

TEST_F(Builder, TheWayOfTheValueHasItsLinesAndTheLineItsNeighbours) {
    const std::string path = testing::TempDir() + "numsan_excerpt_" + std::to_string(getpid()) + ".py";
    std::ofstream(path) << "a\nb\n\n    y = x.log()\nc\n";
    stacks.stacks[1][1] = {path, "forward", 4, &head, false};
    ChainLink link;
    link.op = "aten::mul";
    link.stack = 2;
    escaped.birth.chain = {link};
    const Finding finding = build();
    EXPECT_EQ(finding.excerpt_line, 1);
    EXPECT_EQ(finding.excerpt, (std::vector<std::string>{"a", "b", "", "    y = x.log()", "c"}));
    ASSERT_EQ(finding.chain.size(), 1u);
    ASSERT_TRUE(finding.chain[0].location.has_value());
    EXPECT_EQ(finding.chain[0].location->line, 44);
    stacks.stacks[1][1].line = 9;
    EXPECT_TRUE(build().excerpt.empty()) << "the file has no such line";
    std::remove(path.c_str());
}

TEST_F(Builder, EqualLinesOfAFunctionAreTwoPlaces) {
    const std::string path = testing::TempDir() + "numsan_equal_" + std::to_string(getpid()) + ".py";
    std::ofstream(path) << "def forward(x):\n  x = log(x)\n  x = log(x)\n";
    SourceFrame& line = stacks.stacks[1].front();
    line.file = path;
    line.function = "forward";
    line.line = 2;
    const Finding first = build();
    line.line = 3;
    const Finding second = build();
    EXPECT_EQ(first.location->code, second.location->code);
    EXPECT_NE(place_of_finding(first), place_of_finding(second));
    EXPECT_NE(first.fingerprint, second.fingerprint);
    std::ofstream(path) << "# a line more\ndef forward(x):\n  x = log(x)\n  x = log(x)\n";
    EXPECT_EQ(build().fingerprint, first.fingerprint) << "the line has moved";
    line.line = 4;
    EXPECT_EQ(build().fingerprint, second.fingerprint);
    std::remove(path.c_str());
}

}  // namespace
}  // namespace numsan
