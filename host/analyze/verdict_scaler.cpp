// What a loss scaler catches is its to deal with, until it is plain that it cannot.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "host/analyze/measure.h"
#include "host/analyze/mechanism.h"
#include "host/analyze/verdict.h"

namespace numsan {
namespace {

constexpr size_t kMaxHeldBack = 1 << 10;

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value);
    return text;
}

}  // namespace

/// Whether the value would come about at any scale. Only what is certain counts: an overflow of what was scaled would
/// not.
bool Verdict::comes_at_any_scale(const Birth& birth) const {
    if (birth.phase == Phase::Forward || birth.phase == Phase::Data || birth.phase == Phase::Load)
        return !stacks_.is_scaler(birth.stack);
    const auto is = [&](const char* mechanism) { return std::strcmp(birth.mechanism, mechanism) == 0; };
    if (birth.op == "compiled region" || is("OVF") || is("HYPER") || is("KERN")) return false;
    if (birth.kind == kNaN) return true;
    const int divisor = blamed_operand(plain_op_name(birth.op));
    return divisor >= 0 && static_cast<size_t>(divisor) < birth.inputs.size() &&
           birth.inputs[static_cast<size_t>(divisor)].health.zero > 0;
}

void Verdict::scaler_looks(const OpEvent& event) {
    bool bad = false;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const Kinds* known = ledger_.find(event.inputs[i]);
        if (known == nullptr) continue;
        for (const Kind kind : kNonFiniteKinds) {
            Birth* birth = births_.find(known->of(kind));
            if (birth == nullptr) continue;
            birth->scaler = true;
            bad = true;
        }
    }
    scaler_.looked(bad);
    std::erase_if(gradients_, [&](const Pending& p) {
        const Birth* birth = births_.find(p.birth);
        if (birth == nullptr) return true;
        if (!birth->scaler || birth->escaped) return false;
        const bool held = std::any_of(held_back_.begin(), held_back_.end(),
                                      [&](const Pending& other) { return other.birth == p.birth; });
        if (!held && held_back_.size() < kMaxHeldBack) held_back_.push_back(p);
        return true;
    });
}

/// The scale is written, then whether something was found is read.
void Verdict::scale_changes(const OpEvent& event, Outcome& outcome) {
    bool skipped = scaler_.bad();
    double scale = -1;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (!scannable(input) || !scanner_.measures(input)) continue;
        const double value = scanner_.health(input).absmax;
        if (written_by(event, input))
            scale = value;
        else
            skipped = value != 0;
    }
    scaler_.updated(skipped, scale);
    if (!skipped) held_back_.clear();
    if (scaler_.is_used_up()) {
        give_up("the loss scaler is down to " + number(scale) + ", it skipped " + std::to_string(scaler_.skipped()) +
                    " of " + std::to_string(scaler_.steps()) + " steps",
                outcome, true);
    } else if (scaler_.is_stuck()) {
        give_up("the loss scaler skipped " + std::to_string(scaler_.skips()) +
                    " steps in a row: at a smaller scale this comes about, too",
                outcome);
    }
}

/// Reports what was held back: all of it, or what no scale avoids.
void Verdict::give_up(const std::string& why, Outcome& outcome, bool all) {
    std::erase_if(held_back_, [&](const Pending& p) {
        Birth* birth = births_.find(p.birth);
        if (birth == nullptr || birth->escaped) return true;
        if (!all && !comes_at_any_scale(*birth)) return false;
        birth->scaler = false;
        birth->evidence.push_back(why);
        report(p, Severity::Error, outcome);
        return true;
    });
}

}  // namespace numsan
