// What a finding is sorted by, named as in the report schema. Depends on nothing.
#pragma once

#include <cstdint>

namespace numsan {

enum class Severity : uint8_t { Error, Warning, Info };
enum class Phase : uint8_t { Forward, Backward, Optimizer, Data, Comm, Load };
enum class FindingKind : uint8_t { NaN, Inf, Overflow, Underflow };
/// What became of a value that reached nothing that matters, by the last op that met it.
enum class Fate : uint8_t { Unread, ReadLast, Joined, NoFloats, Finite, Masked, Overwritten };
enum class EscapeInto : uint8_t { Loss, Gradient, Parameter, OptimizerState, Buffer, Collective, Host, Output };

/// What stays from step to step.
constexpr bool is_state(EscapeInto into) {
    return into == EscapeInto::Parameter || into == EscapeInto::Gradient || into == EscapeInto::OptimizerState ||
           into == EscapeInto::Buffer;
}

const char* to_string(Severity);
const char* to_string(Phase);
const char* to_string(FindingKind);
const char* to_string(EscapeInto);
const char* to_string(Fate);

}  // namespace numsan
