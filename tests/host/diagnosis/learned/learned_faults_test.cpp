// What a learned model says of a run, and of which runs it is asked.
#include "host/diagnosis/learned/learned_faults.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "host/diagnosis/fault_advice.h"
#include "host/diagnosis/ranking.h"
#include "tests/host/diagnosis/made_signals.h"

namespace numsan {
namespace {

using Json = nlohmann::ordered_json;

size_t place_of(const std::string& key) {
    for (size_t i = 0; i < kRunFeatureCount; ++i) {
        if (kRunFeatures[i].key == key) return i;
    }
    return kRunFeatureCount;
}

/// Ill with a loss that ends above 0.9 of its start; then a wide update is a large rate, and a narrow one a small rate
/// or, less likely, labels that do not belong.
Json made_model() {
    const size_t loss = place_of("loss_ratio"), update = place_of("update_median");
    Json model = {{"least_ill", 0.5}, {"slope", 1}, {"offset", 0}, {"faults", {"ND107", "ND108", "ND123"}}};
    model["features"] = Json::array();
    model["usual"] = Json::array();
    for (const RunFeature& one : kRunFeatures) {
        model["features"].push_back(one.key);
        model["usual"].push_back(nullptr);
    }
    model["usual"][loss] = 0.25;
    const Json question = {loss, 0.9, 2}, wide = {update, 0.1, 2};
    model["ill"] = Json::array(
        {Json::array({question, Json::array({Json::array({0, 0.0})}), Json::array({Json::array({0, 0.8})})})});
    model["which"] = Json::array({Json::array({wide, Json::array({Json::array({1, 0.625}), Json::array({2, 0.375})}),
                                               Json::array({Json::array({0, 1.0})})})});
    return model;
}

LearnedModel model() {
    const auto read = LearnedModel::read(made_model().dump());
    EXPECT_TRUE(read);
    return read.value_or(LearnedModel{});
}

Signals ill_signals() {
    Signals signals = healthy_signals();
    signals.trend.last = 2;
    return signals;
}

TEST(LearnedFaults, AreOfWhatLooksIll) {
    EXPECT_TRUE(learned_faults(healthy_signals(), model()).empty());
    const std::vector<Fault> faults = learned_faults(ill_signals(), model());
    ASSERT_EQ(faults.size(), 2u) << "the second is more than half as likely";
    EXPECT_EQ(faults[0].id, FaultId::RateTooSmall);
    EXPECT_EQ(faults[1].id, FaultId::UnrelatedLabels);
    EXPECT_TRUE(faults[0].learned);
    EXPECT_NEAR(faults[0].confidence, 0.8 * 0.625, 1e-9);
    EXPECT_NEAR(faults[1].confidence, 0.8 * 0.375, 1e-9);
    EXPECT_EQ(faults[0].location->line, 31) << "that calls step()";
    EXPECT_EQ(faults[1].location->line, 29) << "that computes the loss";
    EXPECT_EQ(faults[0].help, changes_for(FaultId::RateTooSmall));
}

TEST(LearnedFaults, OfOneRunHaveConfidencesOfOneAtMost) {
    Json sure = made_model();
    sure["offset"] = 2;
    const auto read = LearnedModel::read(sure.dump());
    ASSERT_TRUE(read);
    const std::vector<Fault> faults = learned_faults(ill_signals(), *read);
    ASSERT_EQ(faults.size(), 2u);
    EXPECT_GT(faults[0].confidence, 0.8);
    EXPECT_DOUBLE_EQ(faults[0].confidence + faults[1].confidence, 1);
}

TEST(LearnedFaults, SayWhatTheyDependOn) {
    const std::vector<Fault> faults = learned_faults(ill_signals(), model());
    ASSERT_FALSE(faults.empty());
    EXPECT_EQ(faults[0].evidence,
              (std::vector<std::string>{
                  "no rule is met; a model that was learned from runs with a known fault takes this for the likeliest",
                  "mean of the last 16 losses over that of the first 4: 1; 0.25 in the median healthy run"}));
    EXPECT_EQ(faults[0].signals, std::vector<std::string>{"loss"});
    EXPECT_EQ(
        faults.at(1).evidence[0],
        "no rule is met; a model that was learned from runs with a known fault takes this for the second likeliest");
}

TEST(LearnedFaults, OfALessLikelyOneAreLeftOut) {
    Signals signals = ill_signals();
    for (ParameterSignals& one : signals.parameters) one.update.assign(signals.steps.size(), 0.5);
    const std::vector<Fault> faults = learned_faults(signals, model());
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(faults[0].id, FaultId::RateTooLarge);
}

TEST(LearnedFaults, AreNotSaidWhereTheLossSaysLittle) {
    const auto said = [](auto&& change) {
        Signals signals = ill_signals();
        change(signals.trend);
        return learned_faults(signals, model()).size();
    };
    EXPECT_EQ(said([](LossTrend&) {}), 2u);
    EXPECT_EQ(said([](LossTrend& trend) { trend.count = 31; }), 0u) << "too few passes";
    EXPECT_EQ(said([](LossTrend& trend) { trend.places = 2; }), 0u) << "two losses";
    EXPECT_EQ(said([](LossTrend& trend) { trend.last = NAN; }), 0u) << "of a loss scaler";
    EXPECT_EQ(said([](LossTrend& trend) { trend.first = -2; }), 0u) << "a negative one";
    Signals few = ill_signals();
    few.steps.back() = 20;
    EXPECT_TRUE(learned_faults(few, model()).empty()) << "many passes, and few steps";
    EXPECT_EQ(said([](LossTrend& trend) { trend.first = NAN; }), 0u) << "not known at first";
    EXPECT_EQ(said([](LossTrend& trend) { trend.first = 0; }), 0u) << "nothing to compare with";
}

TEST(LearnedModel, IsRefusedWhereItIsOfOtherFeaturesOrFaults) {
    EXPECT_FALSE(LearnedModel::read("{}"));
    EXPECT_FALSE(LearnedModel::read("no JSON"));
    for (const char* key : {"features", "usual", "faults", "ill", "which", "least_ill", "slope", "offset"}) {
        Json damaged = made_model();
        damaged.erase(key);
        EXPECT_FALSE(LearnedModel::read(damaged.dump())) << key;
    }
    Json renamed = made_model();
    renamed["features"][3] = "loss";
    EXPECT_FALSE(LearnedModel::read(renamed.dump()));
    renamed = made_model();
    renamed["faults"][0] = "ND999";
    EXPECT_FALSE(LearnedModel::read(renamed.dump()));
}

TEST(LearnedModel, SharesOfZeroAreNoAnswer) {
    Json empty = made_model();
    empty["which"] = Json::array({Json::array({Json::array({Json::array({0, 0.0})})})});
    const auto read = LearnedModel::read(empty.dump());
    ASSERT_TRUE(read);
    EXPECT_TRUE(learned_faults(ill_signals(), *read).empty());
}

/// A loss that goes up and down above that of a guess, and weights that grow by steps of a twentieth of their size.
Signals standing_signals() {
    Signals signals = healthy_signals();
    signals.trend = {200, 1, 2.4, 2.6, 2.2, 0, ""};
    for (size_t i = 0; i < signals.loss.size(); ++i) signals.loss[i] = i % 2 == 0 ? 2.3 : 2.9;
    signals.losses[0].classes = 10;
    for (ParameterSignals& one : signals.parameters) {
        one.update.assign(signals.steps.size(), 0.05);
        for (size_t i = 0; i < one.weight.size(); ++i) one.weight[i] = 0.1 + 0.05 * static_cast<double>(i);
    }
    return signals;
}

TEST(LearnedModel, OfTheProgramIsAskedWhereNoRuleIsMet) {
    const LearnedModel* own = LearnedModel::own();
    ASSERT_NE(own, nullptr);
    EXPECT_TRUE(rank_faults(healthy_signals()).empty());
    Signals signals = standing_signals();
    ASSERT_TRUE(ruled_faults(signals).empty());
    const std::vector<Fault> faults = rank_faults(signals);
    ASSERT_FALSE(faults.empty());
    EXPECT_TRUE(faults[0].learned);
    for (ParameterSignals& one : signals.parameters) one.carried.assign(signals.steps.size(), 1);
    ASSERT_FALSE(learned_faults(signals, *own).empty());
    for (const Fault& fault : rank_faults(signals)) EXPECT_FALSE(fault.learned) << info(fault.id).code;
    EXPECT_EQ(rank_faults(signals).at(0).id, FaultId::MissingZeroGrad);
}

}  // namespace
}  // namespace numsan
