// What a loss is computed from, against what it expects.
#include "host/diagnosis/rules/measures.h"
#include "host/diagnosis/rules/rules.h"

namespace numsan {
namespace {

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

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

void missing_log_softmax(const Signals& signals, const LossSignals& loss, std::vector<Fault>& faults) {
    if (!contains(loss.op, "nll_loss") || !is_raw(loss.made_by) || has_fallen(signals.trend)) return;
    if (!is_steady(signals, loss.steps) || loss.raw_steps < loss.steps) return;
    Fault fault = make_fault(FaultId::MissingLogSoftmax, loss.location);
    fault.evidence.push_back("the exponentials of a row that `nll_loss` read sum up to " + value_text(loss.row_sum) +
                             ", where those of log-probabilities sum up to 1; so in all " + grouped(loss.steps) +
                             " sampled steps");
    fault.evidence.push_back("`" + loss.made_by + "` made what it read");
    fault.help = {"take `cross_entropy` of the logits", "or apply `log_softmax` to the output"};
    faults.push_back(std::move(fault));
}

}  // namespace

void diagnose_loss(const Signals& signals, std::vector<Fault>& faults) {
    for (const LossSignals& loss : signals.losses) {
        double_activation(signals, loss, faults);
        missing_log_softmax(signals, loss, faults);
    }
}

}  // namespace numsan
