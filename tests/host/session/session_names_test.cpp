// A session that asks for names: of the state that a finding reached, of gradients that the program may have dropped.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/host/session/played.h"

namespace numsan {
namespace {

/// A NaN in a loss goes through a gradient into a moment, a statistic and an average.
TEST(SessionNames, ListsTheStateThatAFindingReachedAndSinceWhen) {
    using Role = LiveNames::TensorName::Role;
    Played& r = Played::make();
    static AdapterApi adapter;
    adapter.hook = "fallback";
    adapter.storage_of = [](const void* impl) { return impl; };  // as made-up tensors have it
    r.session->use(adapter);
    MadeUp loss{kNan}, gradient{kNan}, moment{kNan}, average{kNan}, statistic{kNan}, clean{1}, x{-1};
    r.stacks.live.tensors = {{&moment, {"exp_avg of head.weight", Role::OptimizerState}},
                             {&average, {"average.weight", Role::Parameter}},
                             {&statistic, {"head.mean", Role::Buffer}},
                             {&clean, {"exp_avg of head.bias", Role::OptimizerState}}};
    r.op(kLog, {x.view()}, {loss.returned()});
    r.loss(loss);
    r.op(kMul, {loss.view()}, {gradient.returned()});
    r.session->scope_begin("Optimizer.step#Adam.step");
    r.op(kAdd, {moment.view(), gradient.view()}, {moment.written()});
    r.session->scope_end("Optimizer.step#Adam.step");
    const json early = r.read()["findings"][0]["contaminated"];
    ASSERT_EQ(early.size(), 1u) << "a run that is killed has told of it: " << early;
    EXPECT_EQ(early[0], json({{"kind", "optimizer_state"}, {"name", "exp_avg of head.weight"}, {"since_step", 0}}));
    r.op(kAdd, {average.view(), gradient.view()}, {average.written()});
    for (int i = 0; i < 3; ++i) {
        r.op(kAdd, {moment.view(), gradient.view()}, {moment.written()});
        r.session->scope_begin("Optimizer.step#Adam.step");
        r.session->scope_end("Optimizer.step#Adam.step");
    }
    const int look_ups = r.stacks.look_ups.load();
    EXPECT_EQ(look_ups, 3) << "for the finding, and as two steps end";
    r.op(kMul, {gradient.view()}, {statistic.returned()});  // a buffer that is assigned anew
    r.session->finish(0);
    const json report = r.read();
    ASSERT_EQ(report["findings"].size(), 1u);
    std::map<std::string, int> since;
    for (const json& one : report["findings"][0]["contaminated"]) since[one["name"]] = one["since_step"];
    EXPECT_EQ(since,
              (std::map<std::string, int>{{"exp_avg of head.weight", 0}, {"average.weight", 1}, {"head.mean", 4}}));
    r.remove();
}

TEST(SessionNames, FindingsBeyondTheLimitAskForNone) {
    Played& r = Played::make("max_findings=2");
    for (int i = 0; i < 4; ++i) {
        MadeUp x{-1}, y{kNan};
        r.stacks.now = static_cast<StackId>(10 + i);
        r.stacks.stacks[r.stacks.now] = {{"/home/me/model.py", "forward", 20 + i, nullptr, false}};
        r.op(kLog, {x.view()}, {y.returned()});
        r.loss(y);
    }
    EXPECT_EQ(r.stacks.look_ups.load(), 2);
    r.session->finish(0);
    EXPECT_EQ(r.read()["findings"].size(), 2u);
    r.remove();
}

TEST(SessionNames, GradientThatTheProgramLetGoOfIsAWarning) {
    using Role = LiveNames::TensorName::Role;
    static AdapterApi adapter;
    adapter.hook = "fallback";
    adapter.gradient_of = [](const void*) -> const void* { return nullptr; };  // as made-up names have it already
    for (const bool dropped : {false, true}) {
        Played& r = Played::make();
        r.session->use(adapter);
        MadeUp x{0}, zero{0}, gradient{kInf};
        MadeUp weight({1}, kParameter);
        r.stacks.live.tensors[&weight] = {"head.weight", Role::Parameter};
        if (!dropped) r.stacks.live.tensors[&gradient] = {"head.weight", Role::Gradient, &gradient, &weight};
        r.node("SqrtBackward0", 17);
        r.op(kDiv, {x.view(), zero.view()}, {gradient.returned()});
        r.session->node_end();
        r.node("torch::autograd::AccumulateGrad", ~uint64_t(0), &gradient, &weight);
        r.session->node_end();
        r.session->finish(0);
        const json findings = r.read()["findings"];
        ASSERT_EQ(findings.size(), 1u);
        EXPECT_EQ(findings[0]["severity"], dropped ? "warning" : "error");
        r.remove();
    }
}

}  // namespace
}  // namespace numsan
