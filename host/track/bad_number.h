// A Python number that is not finite, handed to an op: a rate, a factor, a bound.
#pragma once

#include <optional>
#include <string>

#include "host/base/adapter_abi.h"

namespace numsan {

/// The first number that leaves nothing finite: a NaN. Of infinities, which programs write on purpose, only if asked.
std::optional<double> bad_number(const OpEvent& event, bool infinities);

/// "a number that `aten::add_` was given is nan"
std::string said_of_number(const std::string& op, double number);

}  // namespace numsan
