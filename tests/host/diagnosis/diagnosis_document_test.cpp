// Signals in a report and back, and faults as text.
#include "host/diagnosis/diagnosis_document.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "host/diagnosis/diagnosis.h"
#include "host/diagnosis/ranking.h"
#include "tests/host/diagnosis/made_signals.h"

namespace numsan {
namespace {

using Json = nlohmann::ordered_json;

TEST(DiagnosisDocument, WhatIsReadBackIsWrittenTheSame) {
    Signals signals = healthy_signals();
    signals.loss[3] = NAN;
    signals.trend.last = NAN;
    signals.parameters[0].name.clear();
    const Json document = diagnosis_document(signals);
    EXPECT_TRUE(document["loss"][3].is_null());
    const std::optional<Signals> back = read_signals(document);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(diagnosis_document(*back), document);
}

TEST(DiagnosisDocument, DamagedOnesAreReadAsFarAsTheyGo) {
    EXPECT_FALSE(read_signals(Json(nullptr)).has_value());
    EXPECT_FALSE(read_signals(Json::object()).has_value());
    EXPECT_FALSE(read_signals(Json{{"steps", {1, -2}}}).has_value());
    const Json document = diagnosis_document(healthy_signals());
    const Json others[] = {nullptr, "text", 7, -1e300, Json::array({nullptr, "x"}), Json::object()};
    for (const auto& [key, value] : document.items()) {
        for (const Json& other : others) {
            Json damaged = document;
            damaged[key] = other;
            if (const auto signals = read_signals(damaged)) rank_faults(*signals);
        }
    }
    Json wild = document;
    wild["activations"][0]["parameter"] = 1000000;
    wild["activations"][0]["zeros"] = {1, 1};
    EXPECT_TRUE(rank_faults(*read_signals(wild)).empty());
}

TEST(DiagnosisDocument, TheEndOfARunAndItsReportSayTheSame) {
    Signals signals = idle_signals();
    signals.losses[0].made_by = "aten::_softmax";
    const Diagnosis diagnosis = diagnose(signals);
    const Json document = Json::parse(diagnosis.document);
    ASSERT_EQ(document["faults"].size(), 1u);
    EXPECT_EQ(document["faults"], faults_document(rank_faults(*read_signals(document))));
    EXPECT_EQ(document["faults"][0]["code"], "ND102");
    EXPECT_EQ(document["faults"][0]["location"]["line"], 22);
}

TEST(DiagnosisText, SaysWhatWasSeenWhereAndWhatToChange) {
    Signals signals = idle_signals();
    signals.losses[0].made_by = "aten::_softmax";
    TextStyle style;
    style.cwd = "/home/me";
    EXPECT_EQ(render_diagnosis(signals, rank_faults(signals), style),
              "fault[ND102]: the loss applies the output's activation once more\n"
              "  --> model.py:22 in forward\n"
              "   |  return self.head(x)\n"
              "   = because:  `aten::_log_softmax` of the loss read what `aten::_softmax` had made, in 11 of 11 "
              "sampled steps\n"
              "   = fault:    double-activation, 98 %\n"
              "   = help:     hand the logits to the loss: leave out the softmax, or take `nll_loss` of `log_softmax`\n"
              "numsan: 1 training fault in 11 sampled steps; `numsan explain ND102` says more\n");
    EXPECT_EQ(render_diagnosis(signals, {}, style), "numsan: no training fault was recognised in 11 sampled steps\n");
}

}  // namespace
}  // namespace numsan
