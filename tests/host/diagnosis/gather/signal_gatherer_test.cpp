// What is measured of a made-up training, and that nothing is without the option.
#include "host/diagnosis/gather/signal_gatherer.h"

#include <gtest/gtest.h>

#include "tests/host/session/played.h"

namespace numsan {
namespace {

const OpInfo kAddmm{"aten::addmm", "", OpClass::Other, false, 10};
const OpInfo kRelu{"aten::relu", "", OpClass::Preserving, false, 11};
const OpInfo kSoftmax{"aten::_softmax", "", OpClass::Other, false, 12};
const OpInfo kLogSoftmax{"aten::_log_softmax", "", OpClass::Other, false, 13};
const OpInfo kNll{"aten::nll_loss_forward", "", OpClass::Other, false, 14};
const OpInfo kRenorm{"aten::embedding_renorm_", "", OpClass::Other, true, 16};
const OpInfo kZero{"aten::zero_", "", OpClass::Constant, true, 15};

/// One layer, a relu, an output and its loss, trained with a rate of 0.5.
struct Training {
    Played& r;
    MadeUp weight{{1, -1, 2, 2}, kParameter}, head{{1, 1}, kParameter};
    MadeUp gradient{0, 0, 0, 0}, head_gradient{0, 0};
    bool clears = true, softmax = false, dead = false, renorms = false;

    explicit Training(const char* options = "diagnose=1") : r(Played::make(options)) {
        r.stacks.live.tensors[&weight] = {"model.weight", LiveNames::TensorName::Role::Parameter, nullptr, nullptr};
    }

    void forward() {
        MadeUp x{1, 2}, made{-1, 3}, hidden{0, 3}, logits{1, 3}, p{0.25f, 0.75f}, logs{-1.3862944f, -0.28768207f},
            loss{2};
        if (dead) hidden.values = {0, 0};
        r.stacks.now = kModel;
        r.op(kAddmm, {x.view(), weight.view()}, {made.returned()});
        r.op(kRelu, {made.view()}, {hidden.returned()});
        r.op(kAddmm, {hidden.view(), head.view()}, {logits.returned()});
        if (softmax) r.op(kSoftmax, {logits.view()}, {p.returned()});
        r.stacks.now = kTrain;
        r.op(kLogSoftmax, {softmax ? p.view() : logits.view()}, {logs.returned()});
        r.op(kNll, {logs.view()}, {loss.returned()});
        r.loss(loss);
    }

    void accumulate(MadeUp& parameter, MadeUp& sum, float value) {
        MadeUp incoming(std::vector<float>(parameter.values.size(), value));
        r.node("torch::autograd::AccumulateGrad", ~uint64_t(0), &incoming, &parameter);
        for (float& one : sum.values) one += value;
        r.update(sum, incoming);  // in place, inside the node
        r.session->node_end();
    }

    void step() {
        forward();
        if (clears) {
            for (MadeUp* one : {&gradient, &head_gradient}) {
                std::fill(one->values.begin(), one->values.end(), 0.0f);
                r.op(kZero, {one->view()}, {one->written()});
            }
        }
        accumulate(head, head_gradient, 0.1f);
        accumulate(weight, gradient, dead ? 0 : 0.2f);
        if (renorms) {  // a second micro-batch, whose forward pass writes the weights
            forward();
            for (MadeUp* one : {&weight, &head}) r.op(kRenorm, {one->view()}, {one->written()});
            accumulate(head, head_gradient, 0.1f);
            accumulate(weight, gradient, 0.2f);
        }
        r.stacks.now = kTrain;
        r.session->scope_begin("Optimizer.step#SGD.step");
        for (auto [parameter, sum] : {std::pair{&head, &head_gradient}, std::pair{&weight, &gradient}}) {
            for (size_t i = 0; i < parameter->values.size(); ++i) parameter->values[i] -= 0.01f * sum->values[i];
            r.update(*parameter, *sum);
        }
        r.session->scope_end("Optimizer.step#SGD.step");
    }

    json finish(int steps) {
        for (int i = 0; i < steps; ++i) step();
        r.session->finish(0);
        json report = r.read();
        r.remove();
        return report;
    }
};

TEST(SignalGatherer, NothingIsMeasuredUnlessItIsAskedFor) {
    EXPECT_FALSE(Training("").finish(8).contains("diagnosis"));
}

TEST(SignalGatherer, AHealthyTrainingHasSignalsAndNoFault) {
    const json report = Training().finish(10);
    const json& diagnosis = report["diagnosis"];
    EXPECT_EQ(diagnosis["faults"], json::array());
    EXPECT_EQ(diagnosis["steps"], json({0, 1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(diagnosis["loss"][0], 2.0);
    EXPECT_EQ(diagnosis["trend"]["count"], 10);
    EXPECT_EQ(diagnosis["trend"]["places"], 1);
    EXPECT_EQ(diagnosis["optimizer"]["steps"], 9);
    EXPECT_EQ(diagnosis["optimizer"]["location"]["line"], 40);
    EXPECT_EQ(diagnosis["backward"]["location"]["line"], 44);
    ASSERT_EQ(diagnosis["parameters"].size(), 2u);
    const json& weight = diagnosis["parameters"][0];
    EXPECT_EQ(weight["name"], "model.weight");
    EXPECT_EQ(weight["op"], "aten::addmm");
    EXPECT_EQ(weight["location"]["line"], 3);
    EXPECT_NEAR(weight["gradient"][0].get<double>(), 0.2, 1e-6);
    EXPECT_NEAR(weight["weight"][0].get<double>(), std::sqrt(10.0 / 4), 1e-6);
    EXPECT_NEAR(weight["update"][0].get<double>(), 0.002 / std::sqrt(10.0 / 4), 1e-6);
    EXPECT_EQ(weight["carried"], json({0, 0, 0, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(weight["changed"], true);
    ASSERT_EQ(diagnosis["activations"].size(), 1u);
    EXPECT_EQ(diagnosis["activations"][0]["parameter"], 0);
    EXPECT_EQ(diagnosis["activations"][0]["feeds"], true);
    EXPECT_EQ(diagnosis["activations"][0]["zeros"][0], 0.5);
}

TEST(SignalGatherer, GradientsThatAreNotClearedAreCarried) {
    Training training;
    training.clears = false;
    const json report = training.finish(10);
    EXPECT_EQ(report["diagnosis"]["parameters"][0]["carried"], json({0, 1, 1, 1, 1, 1, 1, 1, 1}));
    ASSERT_EQ(report["diagnosis"]["faults"].size(), 1u);
    EXPECT_EQ(report["diagnosis"]["faults"][0]["code"], "ND101");
    EXPECT_EQ(report["findings"], json::array());
}

TEST(SignalGatherer, AForwardPassThatWritesItsWeightsIsNoStep) {
    Training training;
    training.renorms = true;
    const json report = training.finish(10);
    const json& carried = report["diagnosis"]["parameters"][0]["carried"];
    for (size_t i = 1; i < 9; ++i) EXPECT_EQ(carried[i], 0) << i;
    EXPECT_EQ(report["diagnosis"]["faults"], json::array());
}

TEST(SignalGatherer, ALossOfASoftmaxIsSeen) {
    Training training;
    training.softmax = true;
    const json report = training.finish(10);
    ASSERT_EQ(report["diagnosis"]["faults"].size(), 1u);
    EXPECT_EQ(report["diagnosis"]["faults"][0]["code"], "ND102");
    EXPECT_EQ(report["diagnosis"]["faults"][0]["location"]["line"], 3);
}

TEST(SignalGatherer, ALayerOfZerosIsSeen) {
    Training training;
    training.dead = true;
    const json report = training.finish(10);
    ASSERT_EQ(report["diagnosis"]["faults"].size(), 1u);
    EXPECT_EQ(report["diagnosis"]["faults"][0]["code"], "ND105");
}

TEST(SignalGatherer, AForkedChildBeginsAnew) {
    Training training;
    training.softmax = true;
    for (int i = 0; i < 10; ++i) training.step();
    training.r.session->before_fork();
    training.r.session->after_fork_in_child();
    EXPECT_EQ(training.finish(0), json()) << "it has nothing to say";
}

}  // namespace
}  // namespace numsan
