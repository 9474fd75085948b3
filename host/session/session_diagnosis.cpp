// What a session does for the option `diagnose` beside handing on events.
#include <utility>

#include "host/diagnosis/diagnosis.h"
#include "host/diagnosis/diagnosis_document.h"
#include "host/session/session.h"

namespace numsan {

/// While the model is alive: many programs drop it before they end.
void Session::name_parameters() noexcept {
    try {
        signals_->name(publisher_.names());
    } catch (...) {
        fail("out of memory or a failure while naming parameters");
    }
}

/// The last report, and what the training's signals say.
void Session::write_last(RunSummary run) {
    if (signals_ == nullptr) return reporter_.finish(run);
    const Diagnosis diagnosis = diagnose(signals_->signals(PlaceFinder(facts_.torch_root, facts_.standard_library)));
    run.sections["diagnosis"] = diagnosis.document;
    run.faulty = !diagnosis.faults.empty();
    reporter_.finish(run);
    if (run.faulty || (options_.verbosity >= 2 && !diagnosis.signals.steps.empty()))
        reporter_.show(
            [&](const TextStyle& style) { return render_diagnosis(diagnosis.signals, diagnosis.faults, style); });
}

}  // namespace numsan
