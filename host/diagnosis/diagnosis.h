// What a run says of its training at its end.
#pragma once

#include <string>
#include <vector>

#include "host/diagnosis/fault.h"
#include "host/diagnosis/signals.h"

namespace numsan {

struct Diagnosis {
    std::string document;  ///< the section `diagnosis` of the report, as JSON
    std::vector<Fault> faults;
    Signals signals;  ///< as the document has them
};

/// Faults are ranked from the signals as the report has them, so that `numsan diagnose` comes to the same. [MT]
Diagnosis diagnose(const Signals& signals);

}  // namespace numsan
