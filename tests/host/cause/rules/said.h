// What rules say about made-up features.
#pragma once

#include <string>
#include <vector>

#include "host/cause/ranking.h"
#include "host/cause/rules/rules.h"

namespace numsan {

using Facts = std::vector<std::string>;

/// Every sentence the rule gives, in its own order.
inline Facts said(Rule rule, const Features& features) {
    Score score;
    rule(features, score);
    Facts facts;
    for (const auto& [weight, fact] : score.facts()) facts.push_back(fact);
    return facts;
}

inline double total(Rule rule, const Features& features) {
    Score score;
    rule(features, score);
    return score.total();
}

inline std::string winner(const Features& features) { return to_string(rank_causes(features).guesses.front().id); }

/// An op in a module's forward, far from the loss, in the middle of a run that goes well.
inline Features features_of(const char* op, Mechanism mechanism, KindSet kind) {
    Features f;
    f.op = op;
    f.mechanism = mechanism;
    f.kind = kind;
    f.phase = Phase::Forward;
    f.step = 5;
    f.touched = f.operand_touched = f.operand_known = true;
    f.in_module = true;
    f.loss_known = true;
    f.parameter_growth.times = 1;
    return f;
}

/// The same, between the last parameter and the loss.
inline Features features_of_loss(const char* op, Mechanism mechanism, KindSet kind) {
    Features f = features_of(op, mechanism, kind);
    f.after_parameters = true;
    f.in_module = false;
    return f;
}

/// The same op inside the autograd node of `forward_op`.
inline Features features_of_backward(const char* forward_op, Mechanism mechanism, KindSet kind) {
    Features f = features_of("div", mechanism, kind);
    f.forward_op = forward_op;
    f.phase = Phase::Backward;
    f.in_module = false;
    return f;
}

}  // namespace numsan
