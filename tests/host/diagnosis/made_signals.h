// Signals of a training for tests: a healthy one, to which a test adds a fault.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "host/diagnosis/ranking.h"
#include "host/diagnosis/signals.h"

namespace numsan {

using Ids = std::vector<FaultId>;
inline Ids ids(const Signals& signals) {
    Ids found;
    for (const Fault& fault : ruled_faults(signals)) found.push_back(fault.id);
    return found;
}

/// Two weights whose gradients are used once, steps of a thousandth, a loss that falls.
inline Signals healthy_signals() {
    Signals signals;
    signals.steps = {0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 32};
    const size_t length = signals.steps.size();
    const auto all = [&](double value) { return Series(length, value); };
    signals.loss = all(1.0);
    signals.step_size = all(0.1);
    signals.trend = {64, 1, 2.0, 0.5, 0.4, 0, ""};
    signals.optimizer_steps = static_cast<int64_t>(length);
    signals.optimizer = Place{"/home/me/train.py", 31, "main", "optimizer.step()", {}};
    signals.backward = Place{"/home/me/train.py", 30, "main", "loss.backward()", {}};
    for (int i = 0; i < 2; ++i) {
        ParameterSignals one;
        one.name = "model." + std::to_string(i) + ".weight";
        one.shape = {8, 8};
        one.dtype = "float32";
        one.op = "aten::addmm";
        one.location = Place{"/home/me/model.py", 10 + i, "forward", "x = self.layer(x)", {}};
        one.changed = true;
        one.passes = 64;
        one.gradient = all(0.01);
        one.weight = all(0.1);
        one.update = all(1e-3);
        one.carried = all(0);
        one.input = all(NAN);
        signals.parameters.push_back(one);
    }
    ActivationSignals relu;
    relu.op = "aten::relu";
    relu.location = Place{"/home/me/model.py", 20, "forward", "x = x.relu()", {}};
    relu.parameter = 0;
    relu.feeds = true;
    relu.zeros = all(0.5);
    relu.at_limit = all(NAN);
    relu.dropped = all(NAN);
    signals.activations.push_back(relu);
    LossSignals loss;
    loss.op = "aten::_log_softmax";
    loss.made_by = "aten::addmm";
    loss.location = Place{"/home/me/train.py", 29, "main", "loss = cross_entropy(y, t)", {}};
    loss.made_at = Place{"/home/me/model.py", 22, "forward", "return self.head(x)", {}};
    loss.classes = 10;
    loss.steps = static_cast<int64_t>(length);
    signals.losses.push_back(loss);
    return signals;
}

/// The loss stands.
inline Signals idle_signals() {
    Signals signals = healthy_signals();
    signals.trend.last = 2.1;
    return signals;
}

}  // namespace numsan
