// Asks the processor once, when the library is loaded. No ifunc: its resolver would run before a sanitizer is ready,
// and clang 14 makes none of C++ functions.
#include "host/scan/instruction_set.h"

namespace numsan {

const char* name_of(InstructionSet set) noexcept {
    switch (set) {
        case InstructionSet::Baseline: return "baseline";
        case InstructionSet::Avx2: return "avx2";
        case InstructionSet::Avx512: return "avx512";
    }
    return "";
}

InstructionSet widest_instruction_set() noexcept {
#if defined(__x86_64__)
    __builtin_cpu_init();
    // The five are what NUMSAN_KERNEL's widest clone is compiled for.
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        return InstructionSet::Avx512;
    }
    if (__builtin_cpu_supports("avx2")) return InstructionSet::Avx2;
#endif
    return InstructionSet::Baseline;
}

InstructionSet instruction_set_in_use = widest_instruction_set();

}  // namespace numsan
