#include "host/diagnosis/learned/learned_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "host/base/thresholds.h"
#include "host/diagnosis/learned/model_files.h"
#include "host/report/json_fields.h"

namespace numsan {
namespace {

using fields::at;
using fields::Json;
using fields::list;

constexpr size_t kMostReasons = 3;

std::optional<FaultId> fault_of(const std::string& code) {
    for (const FaultInfo& row : kFaults) {
        if (row.code == code) return row.value;
    }
    return {};
}

double logit(double share) {
    const double inside = std::clamp(share, 1e-3, 1 - 1e-3);
    return std::log(inside / (1 - inside));
}

std::array<double, kRunFeatureCount> row_of(const RunFeatures& features) {
    std::array<double, kRunFeatureCount> row{};
    for (size_t i = 0; i < kRunFeatureCount; ++i) row[i] = features.*kRunFeatures[i].value;
    return row;
}

}  // namespace

std::optional<LearnedModel> LearnedModel::read(std::string_view text) {
    const Json document = Json::parse(text, nullptr, false);
    LearnedModel model;
    const Json& keys = list(document, "features");
    const Json& usual = list(document, "usual");
    if (keys.size() != kRunFeatureCount || usual.size() != kRunFeatureCount) return {};
    for (size_t i = 0; i < kRunFeatureCount; ++i) {
        if (!keys[i].is_string() || keys[i].get<std::string>() != kRunFeatures[i].key) return {};
        model.usual_[i] = usual[i].is_number() ? usual[i].get<double>() : NAN;
    }
    for (const Json& code : list(document, "faults")) {
        const auto fault = fault_of(code.is_string() ? code.get<std::string>() : "");
        if (!fault) return {};
        model.faults_.push_back(*fault);
    }
    auto ill = Forest::read(at(document, "ill"), kRunFeatureCount, 1);
    auto which = Forest::read(at(document, "which"), kRunFeatureCount, model.faults_.size());
    const auto least = fields::real(document, "least_ill");
    const auto slope = fields::real(document, "slope");
    const auto offset = fields::real(document, "offset");
    if (!ill || !which || !least || !slope || !offset) return {};
    model.ill_ = std::move(*ill);
    model.which_ = std::move(*which);
    model.least_ill_ = *least;
    model.slope_ = *slope;
    model.offset_ = *offset;
    return model;
}

const LearnedModel* LearnedModel::own() {
    static const auto& model = *new std::optional(read(file_model_json()));  // usable during exit
    return model ? &*model : nullptr;
}

std::vector<LearnedModel::Answer> LearnedModel::answers(const RunFeatures& features) const {
    const Row row = row_of(features);
    const double illness = ill_.shares(row)[0];
    if (illness < least_ill_) return {};
    const std::vector<double> shares = which_.shares(row);
    std::vector<size_t> order(shares.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return shares[a] > shares[b]; });
    std::vector<Answer> said;
    for (const size_t fault : order) {
        if (said.size() == 2 || shares[fault] <= 0 || shares[fault] < kNearlyAsLikely * shares[order[0]]) break;
        said.push_back(answer(row, fault, shares[fault], illness));
    }
    if (said.size() == 2) said[1].confidence = std::min(said[1].confidence, 1 - said[0].confidence);
    return said;
}

/// Its reasons are the features without which it is least likely: each in turn is put to what it is in healthy runs.
LearnedModel::Answer LearnedModel::answer(const Row& row, size_t fault, double share, double illness) const {
    Answer answer{faults_[fault], 1 / (1 + std::exp(-(slope_ * logit(share * illness) + offset_))), {}};
    std::vector<std::pair<double, size_t>> losses;
    for (size_t i = 0; i < kRunFeatureCount; ++i) {
        if (std::isnan(row[i]) || row[i] == usual_[i]) continue;
        Row changed = row;
        changed[i] = usual_[i];
        const double left = ill_.shares(changed)[0] * which_.shares(changed)[fault];
        if (left < share * illness) losses.emplace_back(left, i);
    }
    std::sort(losses.begin(), losses.end());
    for (const auto& [left, i] : losses) {
        if (answer.reasons.size() == kMostReasons) break;
        answer.reasons.push_back({&kRunFeatures[i], row[i], usual_[i]});
    }
    return answer;
}

}  // namespace numsan
