#include "host/diagnosis/learned/run_features.h"

#include "host/diagnosis/rules/measures.h"

namespace numsan {
namespace {

constexpr size_t kLately = 5, kFirst = 3;

std::vector<double> values_of(const Series& series) {
    std::vector<double> values;
    for (const Sample& one : measured(series)) values.push_back(one.value);
    return values;
}

/// The median of the last five, or of as many as there are; NaN of none.
double lately(const Series& series) {
    std::vector<double> values = values_of(series);
    if (values.size() > kLately) values.erase(values.begin(), values.end() - kLately);
    return median(std::move(values));
}

double at_first(const Series& series) {
    std::vector<double> values = values_of(series);
    if (values.size() > kFirst) values.resize(kFirst);
    return median(std::move(values));
}

/// Not of a divisor of zero: NaN.
double over(double value, double divisor) { return divisor != 0 ? value / divisor : NAN; }

/// What was measured of several things, those left out of which nothing was.
class Spread {
  public:
    void add(double value) {
        if (!std::isnan(value)) values_.push_back(value);
    }
    double middle() const { return median(values_); }
    double least() const { return values_.empty() ? NAN : *std::min_element(values_.begin(), values_.end()); }
    double most() const { return values_.empty() ? NAN : *std::max_element(values_.begin(), values_.end()); }
    const std::vector<double>& values() const { return values_; }

  private:
    std::vector<double> values_;
};

template <class Each, class Holds>
double share_of(const std::vector<Each>& all, Holds&& holds) {
    return over(static_cast<double>(std::count_if(all.begin(), all.end(), holds)), static_cast<double>(all.size()));
}

void read_loss(const Signals& signals, RunFeatures& out) {
    const LossTrend& trend = signals.trend;
    const std::vector<double> losses = values_of(signals.loss);
    const double first = losses.empty() ? NAN : std::abs(losses.front());
    const double mean = std::abs(trend.first);
    out.loss_ratio = over(trend.last, mean);
    out.loss_ratio_first = over(trend.last, first);
    out.loss_lowest = over(trend.lowest, mean);
    out.loss_early = over(trend.first, first);
    Spread all, rises;
    for (const double loss : losses) all.add(loss);
    for (size_t i = 1; i < losses.size(); ++i) rises.add(over(losses[i], std::abs(losses[i - 1])));
    out.loss_spike = over(all.most(), first);
    out.loss_rise = rises.most();
    out.loss_unknown = 1 - over(static_cast<double>(losses.size()), static_cast<double>(signals.steps.size()));
    out.loss_negative = trend.first < 0 ? 1 : 0;
    out.loss_negated = over(static_cast<double>(trend.negated), static_cast<double>(trend.count));
    out.loss_places = static_cast<double>(trend.places);
}

void read_optimizer(const Signals& signals, RunFeatures& out) {
    out.optimizer_steps = over(static_cast<double>(signals.optimizer_steps), static_cast<double>(signals.steps.size()));
    out.step_size = last_of(signals.step_size);
    out.step_size_fall = over(out.step_size, first_of(signals.step_size));
}

/// How many inputs one output of the weight sums up.
double inputs_of(const ParameterSignals& one) {
    double count = 1;
    for (size_t i = 1; i < one.shape.size(); ++i) count *= static_cast<double>(one.shape[i]);
    return count;
}

void read_weights(const Signals& signals, RunFeatures& out) {
    Spread updates, first_updates, relative, absolute, gradient_growth, growth, gains;
    for (const ParameterSignals& one : signals.parameters) {
        if (!is_weight(one)) continue;
        updates.add(lately(one.update));
        first_updates.add(at_first(one.update));
        relative.add(over(lately(one.gradient), lately(one.weight)));
        absolute.add(median(values_of(one.gradient)));
        if (measured(one.gradient).size() > 1) gradient_growth.add(over(last_of(one.gradient), first_of(one.gradient)));
        if (measured(one.weight).size() > 1) growth.add(over(last_of(one.weight), first_of(one.weight)));
        gains.add(first_of(one.weight) * std::sqrt(inputs_of(one)));
    }
    out.update_median = updates.middle();
    out.update_smallest = updates.least();
    out.update_largest = updates.most();
    out.first_update_median = first_updates.middle();
    out.first_update_largest = first_updates.most();
    out.gradient_median = relative.middle();
    out.gradient_smallest = relative.least();
    if (relative.values().size() > 1) out.gradient_fall = over(relative.values().front(), relative.values().back());
    out.gradient_lowest = absolute.least();
    out.gradient_highest = absolute.most();
    out.gradient_growth = gradient_growth.middle();
    out.weight_growth = growth.middle();
    out.weight_shrink = growth.least();
    out.weight_swell = growth.most();
    out.gain_smallest = gains.least();
    out.gain_largest = gains.most();
}

void read_parameters(const Signals& signals, RunFeatures& out) {
    Spread carried, inputs;
    for (const ParameterSignals& one : signals.parameters) {
        for (const double value : values_of(one.carried)) carried.add(value);
        inputs.add(median(values_of(one.input)));
    }
    const auto share = [&](auto&& holds) { return share_of(signals.parameters, holds); };
    out.carried = carried.most();
    out.input = inputs.most();
    out.unchanged = share([](const ParameterSignals& one) { return !one.changed; });
    out.frozen = share([](const ParameterSignals& one) { return !one.needs_gradient; });
    const bool known = share([](const ParameterSignals& one) { return one.optimized.has_value(); }) > 0;
    out.left_out = share([&](const ParameterSignals& one) { return !one.optimized.value_or(known); });
    out.detached = share([](const ParameterSignals& one) { return one.detached_at.has_value(); }) > 0 ? 1 : 0;
}

void read_activations(const Signals& signals, RunFeatures& out) {
    Spread zeros, limits, first_limits, dropped;
    for (const ActivationSignals& one : signals.activations) {
        zeros.add(last_of(one.zeros));
        limits.add(lately(one.at_limit));
        first_limits.add(first_of(one.at_limit));
        dropped.add(last_of(one.dropped));
    }
    out.zeros_largest = zeros.most();
    out.zeros_smallest = zeros.least();
    out.at_limit = limits.most();
    out.first_at_limit = first_limits.most();
    out.dropped = dropped.most();
    const auto weights = std::count_if(signals.parameters.begin(), signals.parameters.end(), is_weight);
    out.activations =
        static_cast<double>(signals.activations.size()) / static_cast<double>(std::max<ptrdiff_t>(1, weights));
}

void read_labels(const Signals& signals, RunFeatures& out) {
    Spread sums, labels, classes, scales;
    const auto any = [&](auto&& holds) { return share_of(signals.losses, holds) > 0 ? 1.0 : 0.0; };
    for (const LossSignals& one : signals.losses) {
        sums.add(one.row_sum);
        if (one.labels > 0) labels.add(over(static_cast<double>(one.labels), static_cast<double>(one.steps)));
        if (one.classes > 0) classes.add(static_cast<double>(one.classes));
        scales.add(one.scale);
    }
    out.same_labels = any([](const LossSignals& one) { return one.same_labels; });
    out.raw_rows = any([](const LossSignals& one) { return one.raw_steps > 0; });
    out.row_sum = sums.most();
    out.labels_a_step = labels.most();
    out.classes = classes.most();
    out.scale = scales.most();
    out.activated_twice = any([](const LossSignals& one) {
        if (one.op != "aten::_log_softmax" && !contains(one.op, "with_logits")) return false;
        return contains(one.made_by, "softmax") || contains(one.made_by, "sigmoid");
    });
    if (out.classes > 1) out.loss_of_guess = signals.trend.last / std::log(out.classes);
}

}  // namespace

RunFeatures features_of(const Signals& signals) {
    RunFeatures out;
    read_loss(signals, out);
    read_optimizer(signals, out);
    read_weights(signals, out);
    read_parameters(signals, out);
    read_activations(signals, out);
    read_labels(signals, out);
    for (const RunFeature& one : kRunFeatures) {
        double& value = out.*one.value;
        value = std::isfinite(value) ? std::clamp(value, -kLargestFeature, kLargestFeature) : NAN;
    }
    return out;
}

}  // namespace numsan
