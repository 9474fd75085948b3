#include "host/cause/ranking.h"

#include <algorithm>
#include <cmath>

#include "host/base/thresholds.h"
#include "host/cause/rules/rules.h"
#include "host/ops/op_traits.h"

namespace numsan {
namespace {

struct Row {
    CategoryId id;
    Rule rule;
    bool of_the_run = false;  ///< it asks what was measured around the op, and holds where the op is not seen, too
};

constexpr Row kRules[] = {
    {"N1", invalid_data},     {"N2", unsafe_operation},     {"N3", unsafe_gradient, true},
    {"N4", loss_computation}, {"N5", hyperparameter, true}, {"N6", initialization},
    {"N7", model_structure},  {"N8", precision, true},      {"N9", system_fault, true},
};

/// Kernels whose ops are not seen made it, and the mechanism is a guess; a kernel or a library of a program of which no
/// training is seen did; or code that is no op wrote it over what was computed, and the op only read it first.
bool is_unseen(const Features& f) {
    return f.op == kCompiledRegion || is_of_plain_program(f.op) || (f.overwritten && f.mechanism == Mechanism::DATA);
}

}  // namespace

Ranking rank_causes(const Features& features) {
    struct Scored {
        CategoryId id;
        double total;
        Score score;
    };
    Ranking ranking;
    std::vector<Scored> scored;
    scored.push_back({"U", kUnknownTotal, {}});  // first: a cause that is as likely as not knowing is not named
    for (const Row& row : kRules) {
        Score score;
        const bool asked = row.of_the_run ? !is_of_plain_program(features.op) : !is_unseen(features);
        if (asked) row.rule(features, score);
        ranking.weighed.insert(ranking.weighed.end(), score.weighed().begin(), score.weighed().end());
        scored.push_back({row.id, score.total(), std::move(score)});
    }
    std::stable_sort(scored.begin(), scored.end(), [](const Scored& a, const Scored& b) { return a.total > b.total; });
    double sum = 0;
    for (const Scored& s : scored) sum += std::exp(kConfidenceScale * (s.total - scored.front().total));
    for (const Scored& s : scored) {
        ranking.guesses.push_back({s.id, std::exp(kConfidenceScale * (s.total - scored.front().total)) / sum});
    }
    std::vector<std::pair<double, std::string>> facts = scored.front().score.facts();
    std::stable_sort(facts.begin(), facts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (auto& fact : facts) ranking.facts.push_back(std::move(fact.second));
    return ranking;
}

}  // namespace numsan
