// One rule for each root cause, each in a file of its own.
#pragma once

#include "host/cause/rules/score.h"

namespace numsan {

using Rule = void (*)(const Features&, Score&);

void invalid_data(const Features&, Score&);      // N1
void unsafe_operation(const Features&, Score&);  // N2
void unsafe_gradient(const Features&, Score&);   // N3
void loss_computation(const Features&, Score&);  // N4
void hyperparameter(const Features&, Score&);    // N5
void initialization(const Features&, Score&);    // N6
void model_structure(const Features&, Score&);   // N7
void precision(const Features&, Score&);         // N8
void system_fault(const Features&, Score&);      // N9

}  // namespace numsan
