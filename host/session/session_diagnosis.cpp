// What a session does for the options `diagnose` and `perf` beside handing on events.
#include <string>
#include <utility>
#include <vector>

#include "host/diagnosis/diagnosis.h"
#include "host/diagnosis/diagnosis_document.h"
#include "host/session/session.h"

namespace numsan {
namespace {

/// One line on what is lost, if there is memory for it.
void say_lost(const Reporter& reporter, const char* what) noexcept {
    try {
        reporter.say(std::string(what) + ": out of memory or a failure while it was made");
    } catch (...) {
    }
}

}  // namespace

/// While the model is alive: many programs drop it before they end.
void Session::name_parameters() noexcept {
    try {
        const LiveNames names = publisher_.names();
        signals_->name(names);
        reporter_.learn(names.sources);
    } catch (...) {
        say_lost(reporter_, "parameters of the training stay without names");
    }
}

/// The first one is told at once: what grows beside it is in the report.
void Session::warn_early() noexcept {
    try {
        if (const auto first = signals_->take_warnings(reporter_.places()))
            reporter_.show([&](const TextStyle& style) { return render_early_warnings({*first}, style); });
    } catch (...) {
        say_lost(reporter_, "an early warning is lost");
    }
}

/// The last report, what makes the run slow, and what the training's signals say. A section that fails is the only one
/// that is lost.
void Session::write_last(RunSummary run) {
    if (slow_ != nullptr) {
        try {
            run.slow = slow_->run(reporter_.places());
        } catch (...) {
            say_lost(reporter_, "the report has no section `performance`");
        }
    }
    if (signals_ == nullptr) return reporter_.finish(run);
    Diagnosis diagnosis;
    try {
        if (signals_->has_warnings()) warn_early();  // that no op came after
        diagnosis = diagnose(signals_->signals(reporter_.places()));
        run.sections["diagnosis"] = diagnosis.document;
        run.faulty = !diagnosis.faults.empty() || !diagnosis.signals.warnings.empty();
    } catch (...) {
        diagnosis = {};
        run.faulty = false;
        run.sections.erase("diagnosis");
        say_lost(reporter_, "the report has no section `diagnosis`");
    }
    reporter_.finish(run);
    if (!diagnosis.faults.empty() || (options_.verbosity >= 2 && !diagnosis.signals.steps.empty()))
        reporter_.show(
            [&](const TextStyle& style) { return render_diagnosis(diagnosis.signals, diagnosis.faults, style); });
}

}  // namespace numsan
