// What a finding is sorted by, named as in the report schema. Depends on nothing.
#pragma once

#include <cstdint>

namespace numsan {

enum class Severity : uint8_t { Error, Warning, Info };
enum class Phase : uint8_t { Forward, Backward, Optimizer, Data, Comm, Load };
enum class FindingKind : uint8_t { NaN, Inf, Overflow, Underflow };
enum class EscapeInto : uint8_t { Loss, Gradient, Parameter, OptimizerState, Buffer, Collective, Host, Output };

const char* to_string(Severity);
const char* to_string(Phase);
const char* to_string(FindingKind);
const char* to_string(EscapeInto);

}  // namespace numsan
