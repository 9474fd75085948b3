// The training faults of faults.def. Depends on nothing.
#pragma once

#include <cstdint>

namespace numsan {

enum class FaultId : uint8_t {
#define NUMSAN_FAULT(code, id, slug, confidence, name, meaning) id,
#include "host/diagnosis/faults.def"
#undef NUMSAN_FAULT
};

/// A row of faults.def. Literals: valid for ever.
struct FaultInfo {
    FaultId value;
    const char* code;  ///< ND101
    const char* slug;
    double confidence;  ///< a probability
    const char* name;
    const char* meaning;
};

inline constexpr FaultInfo kFaults[] = {
#define NUMSAN_FAULT(code, id, slug, confidence, name, meaning) {FaultId::id, code, slug, confidence, name, meaning},
#include "host/diagnosis/faults.def"
#undef NUMSAN_FAULT
};

constexpr const FaultInfo& info(FaultId fault) { return kFaults[static_cast<int>(fault)]; }

}  // namespace numsan
