// What cures a training fault, and where: the rows of fault_advice.def.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "host/diagnosis/faults.h"

namespace numsan {

/// A line that signals know.
enum class FaultPlace : uint8_t {
    Optimizer,    ///< that calls step()
    Backward,     ///< that calls backward()
    Loss,         ///< that computes a loss
    MadeForLoss,  ///< that made what the loss reads
    FirstWeight,  ///< that reads the first weight
    FirstStart,   ///< that gave the first weight its first values
    Detached,     ///< where the graph is cut
    MostZeros,    ///< of the activation with most zeros
    MostAtLimit,  ///< of the activation with most results at its limits
    Input,        ///< that reads the largest input
};

/// A row. Literals: valid for ever.
struct FaultAdvice {
    FaultId fault;
    FaultPlace place;
    const char* changes[3];  ///< null behind the last
};

inline constexpr FaultAdvice kFaultAdvice[] = {
#define NUMSAN_FAULT_ADVICE(id, place, ...) {FaultId::id, FaultPlace::place, {__VA_ARGS__}},
#include "host/diagnosis/fault_advice.def"
#undef NUMSAN_FAULT_ADVICE
};

constexpr bool advice_is_in_order() {
    for (size_t i = 0; i < std::size(kFaultAdvice); ++i) {
        if (static_cast<size_t>(kFaultAdvice[i].fault) != i) return false;
    }
    return std::size(kFaultAdvice) == std::size(kFaults);
}
static_assert(advice_is_in_order(), "fault_advice.def has a row for each of faults.def, in its order");

constexpr const FaultAdvice& advice(FaultId fault) { return kFaultAdvice[static_cast<int>(fault)]; }

inline std::vector<std::string> changes_for(FaultId fault) {
    std::vector<std::string> changes;
    for (const char* change : advice(fault).changes) {
        if (change != nullptr) changes.emplace_back(change);
    }
    return changes;
}

}  // namespace numsan
