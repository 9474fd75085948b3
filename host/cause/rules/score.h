// What a rule says about one root cause: weights that add up, each with the measured fact it rests on.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "host/base/thresholds.h"
#include "host/cause/evidence.h"
#include "host/cause/features.h"
#include "host/log/format.h"
#include "host/ops/op_traits.h"

namespace numsan {

/// Weights are those of evidence.def, differences of log-odds: +2.2 makes a category nine times as likely against the
/// others. All are scaled as one (see ranking.cpp), so that confidences also hold for programs that
/// no rule was written for.
class Score {
  public:
    /// `fact`: what is said of it in the report, where it speaks for the category; empty: nothing.
    void add(Evidence evidence, std::string fact = {}) {
        const WeighedFact& row = info(evidence);
        total_ += row.weight;
        weighed_.push_back(row);
        if (row.weight > 0 && !fact.empty()) facts_.emplace_back(row.weight, std::move(fact));
    }

    double total() const { return total_; }
    const std::vector<std::pair<double, std::string>>& facts() const { return facts_; }
    const std::vector<WeighedFact>& weighed() const { return weighed_; }

  private:
    double total_ = 0;
    std::vector<WeighedFact> weighed_;
    std::vector<std::pair<double, std::string>> facts_;
};

/// By zero, or by what is so close to it that the quotient overflows.
inline bool divides_by_zero(const Features& f) { return f.mechanism == Mechanism::DIV0 || f.near_zero; }

/// The logarithm of a probability that was rounded to 0 or 1: the unstable form of a loss, wherever it stands.
inline bool is_log_of_probability(const Features& f) {
    return is_logarithm(traits_of(f.op)) && traits_of(f.rounded.op).is({Form::Softmax, Form::Sigmoid});
}

/// Divided by something that the batch brought for each sample apart: not by a count or a total weight of all.
inline bool of_a_sample(const Features& f) {
    return divides_by_zero(f) && f.operand_known && !f.operand_touched && f.operand_elements > 1;
}

/// Made of numbers of the program alone, where the op had not run before: what the program is set up with. Memory that
/// nothing wrote holds no number.
inline bool of_constants(const Features& f) {
    return f.operand_constant && f.first_run && f.mechanism != Mechanism::UNINIT;
}

/// Training moves a parameter, on average, by more than half of the largest weight at the start in a step: it cannot
/// settle.
inline bool steps_of_whole_weights(const Features& f) {
    const ParameterGrowth& grown = f.parameter_growth;
    return f.step > 0 && grown.largest_start > 0 &&
           grown.now >= grown.largest_start * (1 + 0.5 * static_cast<double>(f.step));
}

/// A number that no parameter had touched, and that went into the update itself, not through a loss: a setting.
inline bool of_a_setting(const Features& f) {
    if (f.met == FirstMet::Update) return true;
    return f.phase == Phase::Data && f.into == EscapeInto::Parameter && !f.touched && f.mechanism != Mechanism::DATA;
}

/// A matrix that keeps the size of values has a gain of about 1; training had not made this one grow.
inline bool large_from_the_start(const Features& f) {
    return f.phase == Phase::Forward && !f.narrow && f.weight_gain >= kLargeGain &&
           f.parameter_growth.times < kGrownByTraining;
}

/// The value is of a loss: computed from parameters or in a module, and no parameter is read after it; or computed
/// apart, for a prediction. What a module with parameters computes last is still the model's.
inline bool in_loss(const Features& f) {
    if (f.met == FirstMet::Prediction) return true;
    if (f.in_layer && !is_log_of_probability(f)) return false;
    return f.after_parameters && (f.touched || f.in_module) &&
           (f.phase == Phase::Forward || f.phase == Phase::Backward);
}

}  // namespace numsan
