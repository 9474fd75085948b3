// What a rule says about one root cause: weights that add up, each with the measured fact it rests on.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "host/analyze/features.h"

namespace numsan {

/// Weights are differences of log-odds: +2.2 makes a category nine times as likely against the others. They were set by
/// hand from what the operators do, then scaled as one (see ranking.cpp), so that the confidences are right as often as
/// they say.
class Score {
  public:
    void add(double weight, std::string fact) {
        total_ += weight;
        if (weight > 0 && !fact.empty()) facts_.emplace_back(weight, std::move(fact));
    }
    void against(double weight) { total_ -= weight; }

    double total() const { return total_; }
    const std::vector<std::pair<double, std::string>>& facts() const { return facts_; }

  private:
    double total_ = 0;
    std::vector<std::pair<double, std::string>> facts_;
};

/// "3.4e+38", for facts.
std::string fact_number(double value);

bool is_one_of(const std::string& name, std::initializer_list<const char*> names);

/// The value is of a loss: computed from parameters or in a module, and no parameter was read after it.
inline bool in_loss(const Features& f) {
    return f.after_parameters && (f.touched || f.in_module) &&
           (f.phase == Phase::Forward || f.phase == Phase::Backward);
}

}  // namespace numsan
