// What was measured of a training: the section `diagnosis` of a report, as plain data. Keys, units and sources of the
// series stand in signals.def.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/diagnosis/early_warning.h"
#include "host/finding/place.h"

namespace numsan {

/// One value for each sampled step; NaN where none was measured.
using Series = std::vector<double>;

struct ParameterSignals {
    std::string name;            ///< "model.head.weight"; empty where it is not known
    std::vector<int64_t> shape;  ///< the first dimensions
    std::string dtype;
    std::string op;                 ///< that read it first
    std::optional<Place> location;  ///< of that
    bool changed = false;           ///< its values were seen to change, or an op to write it outside of a backward pass
    bool needs_gradient = true;
    bool feeds = false;                ///< an op that reads another parameter takes what is computed of it
    bool feeds_trained = false;        ///< and so on, up to one that changes
    std::string initial;               ///< "random", "zeros"; empty: loaded, copied or unknown
    std::optional<Place> made_at;      ///< where it got its first values
    std::optional<Place> detached_at;  ///< where what is computed of it leaves the graph
    int64_t passes = 0;                ///< gradients that came to it in sampled steps
    int64_t reads = 0;                 ///< sampled steps in which an op with gradients on read it
    bool of_module = true;             ///< a module is known to have it, or nothing is known; else it may be data
    std::optional<bool> optimized;     ///< an optimizer held it in the second step; none: not known
    Series gradient, weight, update, carried, input;
};

struct ActivationSignals {
    std::string op;
    std::optional<Place> location;
    int call = 0;        ///< which of the calls from there in a step, from 0
    int parameter = -1;  ///< that the op before it reads: position in Signals::parameters
    bool feeds = false;  ///< an op that reads a parameter takes the results
    Series zeros, at_limit, dropped;
};

/// What a loss was computed from.
struct LossSignals {
    std::string op;                 ///< aten::_log_softmax, aten::nll_loss_forward
    std::string made_by;            ///< the op that wrote what it reads
    std::optional<Place> location;  ///< of the loss
    std::optional<Place> made_at;   ///< of that op
    int64_t steps = 0;              ///< sampled steps in which it ran
    int64_t raw_steps = 0;          ///< of these: rows that are no log-probabilities
    double row_sum = 0;             ///< sum of the exponentials of such a row
    int64_t classes = 0;            ///< of a row; 0: unknown
    int64_t labels = 0;             ///< that were looked at; 0: it has none, or they cannot be read
    bool same_labels = false;       ///< all of these are `label`
    double label = 0;
    double scale = NAN;  ///< size of predictions over that of their labels, as the loss was first computed
};

struct LossTrend {
    int64_t count = 0;  ///< of backward passes that began
    int64_t places =
        0;             ///< stacks that they began from: a helper's one line may serve two losses; 8 at most are counted
    double first = 0;  ///< mean of the first 4; this and the others NaN with a loss scaler, whose scale moves them
    double last = 0;   ///< mean of the last 16
    double lowest = 0;
    int64_t negated = 0;     ///< of `count`: backward() started from the negative of a loss function's value
    std::string negated_op;  ///< that function
};

struct Signals {
    std::vector<int64_t> steps;  ///< that were sampled
    Series loss, step_size;
    LossTrend trend;
    int64_t optimizer_steps = 0;  ///< calls of Optimizer.step in sampled steps
    std::optional<Place> optimizer, backward;
    std::vector<ParameterSignals> parameters;  ///< in the order in which the forward pass reads them
    std::vector<ActivationSignals> activations;
    std::vector<LossSignals> losses;
    std::vector<EarlyWarning> warnings;  ///< in the order in which they were sure
    int64_t left_out = 0;  ///< parameters and activations for which there was no room, each once; 4,096 at most
};

}  // namespace numsan
