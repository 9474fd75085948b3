// The rules of training faults. Each adds what it recognises, and says nothing where a signal that it needs was not
// measured. Thresholds are those of thresholds.def.
#pragma once

#include <vector>

#include "host/diagnosis/fault.h"
#include "host/diagnosis/signals.h"

namespace numsan {

void diagnose_optimizer(const Signals& signals, std::vector<Fault>& faults);  ///< ND101, ND104
void diagnose_loss(const Signals& signals, std::vector<Fault>& faults);       ///< ND102, ND103
void diagnose_layers(const Signals& signals, std::vector<Fault>& faults);     ///< ND105, ND106, ND109
void diagnose_rate(const Signals& signals, std::vector<Fault>& faults);       ///< ND107, ND108

}  // namespace numsan
