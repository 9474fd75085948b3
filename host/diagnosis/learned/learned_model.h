// The learned model: whether a training is ill, and of what. model.json has it, written by scripts/diagnose/learn.py.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/diagnosis/faults.h"
#include "host/diagnosis/learned/forest.h"
#include "host/diagnosis/learned/run_features.h"

namespace numsan {

class LearnedModel {
  public:
    /// A feature that the answer depends on: what it is, and what it is in the median healthy run. NaN: not measured.
    struct Reason {
        const RunFeature* feature;
        double value, usual;
    };
    struct Answer {
        FaultId fault;
        double confidence;  ///< a probability; of two together at most 1
        std::vector<Reason> reasons;
    };

    /// None where the text is no model, or one of other features or faults.
    static std::optional<LearnedModel> read(std::string_view text);

    /// That which is part of the program; null where it cannot be read. Valid for ever. [MT]
    static const LearnedModel* own();

    /// The likeliest fault of a run that looks ill enough, and the second one where it is nearly as likely; empty of
    /// one that does not. [MT]
    std::vector<Answer> answers(const RunFeatures& features) const;

  private:
    using Row = std::array<double, kRunFeatureCount>;
    Answer answer(const Row& row, size_t fault, double share, double illness) const;

    Forest ill_, which_;
    std::vector<FaultId> faults_;  ///< the classes of which_
    Row usual_{};
    double least_ill_ = 1;
    double slope_ = 1, offset_ = 0;  ///< of the logit of a confidence over that of its share
};

}  // namespace numsan
