// The instruction sets that scan kernels are compiled for, and which of them this processor runs.
#pragma once

#include <cstdint>

namespace numsan {

/// Wider ones later. On other architectures there is Baseline only.
enum class InstructionSet : uint8_t { Baseline, Avx2, Avx512 };

inline constexpr InstructionSet kInstructionSets[] = {InstructionSet::Baseline, InstructionSet::Avx2,
                                                      InstructionSet::Avx512};

const char* name_of(InstructionSet set) noexcept;

/// The widest that the processor and its system can run.
InstructionSet widest_instruction_set() noexcept;

/// What kernels use: the widest, unless a test has set a narrower one. Baseline while the library is being loaded.
extern InstructionSet instruction_set_in_use;

}  // namespace numsan
