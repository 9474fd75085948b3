// The rules of training faults. Each adds what it recognises, and says nothing where a signal that it needs was not
// measured. Thresholds are those of thresholds.def.
#pragma once

#include <vector>

#include "host/diagnosis/fault.h"
#include "host/diagnosis/signals.h"

namespace numsan {

void diagnose_optimizer(const Signals& signals, std::vector<Fault>& faults);  ///< ND101, ND104, ND111
void diagnose_loss(const Signals& signals, std::vector<Fault>& faults);       ///< ND102, ND103, ND115, ND116, ND121
void diagnose_layers(const Signals& signals, std::vector<Fault>& faults);     ///< ND105, ND106, ND109
void diagnose_reach(const Signals& signals, std::vector<Fault>& faults);      ///< ND110, ND112 to ND114
void diagnose_weights(const Signals& signals, std::vector<Fault>& faults);    ///< ND117 to ND120, ND122
void diagnose_rate(const Signals& signals, std::vector<Fault>& faults);       ///< ND107, ND108

}  // namespace numsan
