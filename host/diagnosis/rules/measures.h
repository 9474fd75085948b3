// What rules ask of series, and the words that they say it in.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "host/base/thresholds.h"
#include "host/diagnosis/fault.h"
#include "host/diagnosis/fault_advice.h"
#include "host/diagnosis/rules/words.h"
#include "host/diagnosis/signals.h"
#include "host/report/text_layout.h"

namespace numsan {

/// Position in a series, and what was measured there.
struct Sample {
    size_t at;
    double value;
};

inline std::vector<Sample> measured(const Series& series) {
    std::vector<Sample> found;
    for (size_t i = 0; i < series.size(); ++i) {
        if (!std::isnan(series[i])) found.push_back({i, series[i]});
    }
    return found;
}

/// NaN where none was measured.
inline double first_of(const Series& series) {
    const std::vector<Sample> all = measured(series);
    return all.empty() ? NAN : all.front().value;
}

inline double last_of(const Series& series) {
    const std::vector<Sample> all = measured(series);
    return all.empty() ? NAN : all.back().value;
}

/// Whether the last kDiagnosedSteps measured ones all hold; false where fewer were measured.
template <class Holds>
bool holds_lately(const Series& series, Holds&& holds) {
    const std::vector<Sample> all = measured(series);
    if (all.size() < static_cast<size_t>(kDiagnosedSteps)) return false;
    return std::all_of(all.end() - kDiagnosedSteps, all.end(), [&](const Sample& one) { return holds(one); });
}

/// Of an even number the lower of the two in the middle.
inline double median(std::vector<double> values) {
    if (values.empty()) return NAN;
    const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// A gradient that is not zero has come lately, in each step.
inline bool has_gradients(const ParameterSignals& one) {
    return holds_lately(one.gradient, [](const Sample& sample) { return sample.value > 0; });
}

/// A matrix or a kernel, not a bias or a scale.
inline bool is_weight(const ParameterSignals& one) { return one.shape.size() >= 2; }

inline bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

/// Whether an op sums up products of the weight and a layer's inputs: rows of an embedding are not summed, nor is a
/// weight that the program scales first.
inline bool is_of_layer(const ParameterSignals& one) {
    if (!is_weight(one)) return false;
    for (const char* op : {"aten::addmm", "aten::mm", "aten::matmul", "aten::linear", "aten::bmm", "convolution",
                           "conv2d", "mkldnn", "aten::lstm", "aten::gru", "aten::_thnn_fused"}) {
        if (contains(one.op, op)) return true;
    }
    return false;
}

/// The same of one whose first values are known.
inline bool is_summed(const ParameterSignals& one) { return is_of_layer(one) && !one.initial.empty(); }

/// What the loss is held against: the mean of its first 4 values, or the very first where the steps after that made it
/// more than twice as large: what falls from there has only come back.
inline double first_loss(const Signals& signals) {
    const double mean = signals.trend.first;
    const double first =
        signals.loss.empty() || signals.steps.empty() || signals.steps.front() != 0 ? NAN : signals.loss.front();
    return first > 0 && first < 0.5 * mean ? first : mean;
}

/// Whether the loss shows what is learned: of one place, positive, over 32 steps, however many backward passes these
/// have.
inline bool loss_says_what_is_learned(const Signals& signals) {
    const LossTrend& trend = signals.trend;
    return trend.places == 1 && trend.count >= 32 && !signals.steps.empty() && signals.steps.back() >= 32 &&
           first_loss(signals) > 0;
}

inline bool has_not_fallen(const Signals& signals) {
    if (!loss_says_what_is_learned(signals)) return false;
    return !(signals.trend.last <= kFallenLoss * first_loss(signals));  // nor where it is not finite any more
}

/// Whether a rectifier before a layer was alive at first and hands on nothing but zeros now.
inline bool layer_has_died(const Signals& signals) {
    return std::any_of(signals.activations.begin(), signals.activations.end(), [](const ActivationSignals& one) {
        return one.feeds && first_of(one.zeros) < 1 &&
               holds_lately(one.zeros, [](const Sample& sample) { return sample.value == 1; });
    });
}

inline std::string died_words() {
    return "a rectifier that was alive in the first step hands on nothing but zeros since";
}

inline std::string loss_words(const Signals& signals) {
    const double first = first_loss(signals);
    return "the loss was " + value_text(first) +
           (first == signals.trend.first ? " in the first 4 backward passes and " : " in the first step and ") +
           (std::isfinite(signals.trend.last) ? value_text(signals.trend.last) : "not finite") + " in the last 16 of " +
           grouped(signals.trend.count);
}

inline std::string name_of(const ParameterSignals& one) { return parameter_words(one.name, one.shape); }

inline std::string steps_words(const Signals& signals) {
    return "in " + grouped(static_cast<int64_t>(signals.steps.size())) + " sampled steps up to step " +
           (signals.steps.empty() ? "0" : digits(signals.steps.back()));
}

/// With the changes of fault_advice.def.
inline Fault make_fault(FaultId id, std::optional<Place> location) {
    Fault fault;
    fault.id = id;
    fault.confidence = info(id).confidence;
    fault.location = std::move(location);
    fault.help = changes_for(id);
    return fault;
}

}  // namespace numsan
