// What a loss is computed from, against what it expects.
#include "host/diagnosis/rules/measures.h"
#include "host/diagnosis/rules/rules.h"

namespace numsan {
namespace {

/// In most of the sampled steps: a program may warm up with another loss.
bool is_steady(const Signals& signals, int64_t steps) {
    return steps >= kDiagnosedSteps && 2 * steps > static_cast<int64_t>(signals.steps.size());
}

void double_activation(const Signals& signals, const LossSignals& loss, std::vector<Fault>& faults) {
    const bool softmax =
        loss.op == "aten::_log_softmax" && contains(loss.made_by, "softmax") && !contains(loss.made_by, "log_softmax");
    const bool sigmoid = loss.op == "aten::binary_cross_entropy_with_logits" && contains(loss.made_by, "aten::sigmoid");
    if ((!softmax && !sigmoid) || !is_steady(signals, loss.steps)) return;
    Fault fault = make_fault(FaultId::DoubleActivation, loss.made_at ? loss.made_at : loss.location);
    fault.evidence.push_back("`" + loss.op + "` of the loss read what `" + loss.made_by + "` had made, in " +
                             grouped(loss.steps) + " of " + grouped(static_cast<int64_t>(signals.steps.size())) +
                             " sampled steps");
    fault.help = {softmax ? "hand the logits to the loss: leave out the softmax, or take `nll_loss` of `log_softmax`"
                          : "hand the logits to the loss: leave out the sigmoid, or take `binary_cross_entropy`"};
    faults.push_back(std::move(fault));
}

/// What a last layer or a softmax hands on. Other ops may have made more of log-probabilities: a weight on each, a
/// margin, a mixture.
bool is_raw(const std::string& made_by) {
    for (const char* op : {"aten::addmm", "aten::mm", "aten::bmm", "aten::baddbmm", "aten::linear", "aten::convolution",
                           "aten::_softmax", "aten::mkldnn_convolution", "aten::_slow_conv2d_forward"}) {
        if (made_by == op) return true;
    }
    return false;
}

/// Fallen towards zero, as of a loss that is what it should be; of raw scores it falls below.
bool has_fallen(const LossTrend& trend) {
    return trend.places == 1 && trend.first > 0 && trend.last >= 0 && trend.last <= kFallenLoss * trend.first;
}

void wrong_dimension(const Signals& signals, const LossSignals& loss, std::vector<Fault>& faults) {
    if (!contains(loss.op, "nll_loss") || !contains(loss.made_by, "log_softmax")) return;
    if (!is_steady(signals, loss.steps) || loss.raw_steps < loss.steps) return;
    Fault fault = make_fault(FaultId::WrongDimension, loss.made_at ? loss.made_at : loss.location);
    fault.evidence.push_back(
        "`" + loss.made_by + "` made what `nll_loss` read, and the exponentials of a row sum up to " +
        value_text(loss.row_sum) + ", not to 1; so in all " + grouped(loss.steps) + " sampled steps");
    faults.push_back(std::move(fault));
}

void missing_log_softmax(const Signals& signals, const LossSignals& loss, std::vector<Fault>& faults) {
    if (!contains(loss.op, "nll_loss") || !is_raw(loss.made_by) || has_fallen(signals.trend)) return;
    if (!is_steady(signals, loss.steps) || loss.raw_steps < loss.steps) return;
    Fault fault = make_fault(FaultId::MissingLogSoftmax, loss.location);
    fault.evidence.push_back("the exponentials of a row that `nll_loss` read sum up to " + value_text(loss.row_sum) +
                             ", where those of log-probabilities sum up to 1; so in all " + grouped(loss.steps) +
                             " sampled steps");
    fault.evidence.push_back("`" + loss.made_by + "` made what it read");
    faults.push_back(std::move(fault));
}

/// What is predicted comes from a layer, as it is or through the activation that the loss has: scores of a contrastive
/// loss, whose label is 0 by design, and residuals, which are to be 0, are products and sums of the program's own.
bool judges_a_layer(const Signals& signals, const LossSignals& loss) {
    if (is_raw(loss.made_by)) return true;
    if (contains(loss.op, "nll_loss")) {
        return std::any_of(signals.losses.begin(), signals.losses.end(), [](const LossSignals& other) {
            return other.op == "aten::_log_softmax" && is_raw(other.made_by);
        });
    }
    return loss.op == "aten::binary_cross_entropy" && contains(loss.made_by, "aten::sigmoid");
}

void constant_labels(const Signals& signals, std::vector<Fault>& faults) {
    const LossSignals* first = nullptr;
    int64_t looked = 0, steps = 0;
    constexpr int64_t kManyLabelsAStep = 256;
    bool two_classes = false;
    for (const LossSignals& loss : signals.losses) {
        if (loss.op == "aten::_log_softmax") {
            two_classes = two_classes || (loss.classes > 0 && loss.classes <= 2);
            continue;
        }
        if (loss.labels == 0 || !loss.same_labels || !judges_a_layer(signals, loss)) return;
        const bool of_classes = contains(loss.op, "nll_loss") || contains(loss.op, "binary_cross_entropy");
        if (!of_classes && loss.label == 0) return;  // a residual, or a penalty towards zero
        if (first != nullptr && loss.label != first->label) return;
        two_classes = two_classes || contains(loss.op, "binary_cross_entropy") ||
                      loss.labels >= kManyLabelsAStep * loss.steps;  // of pixels or words one class may be all there is
        if (first == nullptr) first = &loss;
        looked += loss.labels;
        steps = std::max(steps, loss.steps);
    }
    if (first == nullptr || signals.trend.places != 1 || steps < kDiagnosedSteps) return;
    if (looked < (two_classes ? kFewestRareLabels : kFewestLabels)) return;
    Fault fault = make_fault(FaultId::ConstantLabels, first->location);
    fault.evidence.push_back("each of " + grouped(looked) + " labels that `" + first->op + "` was given in " +
                             grouped(steps) + " sampled steps was " + value_text(first->label));
    faults.push_back(std::move(fault));
}

void ascending_loss(const Signals& signals, std::vector<Fault>& faults) {
    const LossTrend& trend = signals.trend;
    if (trend.places != 1 || trend.count < kDiagnosedSteps || trend.negated < trend.count) return;
    if (trend.last >= trend.first) return;  // an optimizer that makes it larger: maximize=True
    // An adversary changes an input, or a model that was loaded.
    const bool trains = std::any_of(
        signals.parameters.begin(), signals.parameters.end(),
        [](const ParameterSignals& one) { return one.changed && one.initial == "random" && is_summed(one); });
    if (!trains) return;
    Fault fault = make_fault(FaultId::AscendingLoss, signals.backward);
    fault.evidence.push_back("backward() started from the negative of what `" + trend.negated_op +
                             "` had made, in each of " + grouped(trend.count) + " backward passes");
    fault.evidence.push_back("the value that it started from was " + value_text(trend.first) +
                             " in the first 4 backward passes and " +
                             (std::isfinite(trend.last) ? value_text(trend.last) : "not finite") + " in the last " +
                             grouped(std::min<int64_t>(trend.count, 16)));
    fault.signals = {"loss"};
    faults.push_back(std::move(fault));
}

}  // namespace

void diagnose_loss(const Signals& signals, std::vector<Fault>& faults) {
    for (const LossSignals& loss : signals.losses) {
        double_activation(signals, loss, faults);
        missing_log_softmax(signals, loss, faults);
        wrong_dimension(signals, loss, faults);
    }
    constant_labels(signals, faults);
    ascending_loss(signals, faults);
}

}  // namespace numsan
