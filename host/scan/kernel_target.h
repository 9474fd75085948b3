// How the scan kernels are compiled: optimised whatever the build type where the compiler can, and once for each
// instruction set.
#pragma once

#include <cstdint>

#include "host/scan/instruction_set.h"

#if defined(__clang__)
#define NUMSAN_CLONE noinline
#define NUMSAN_VECTOR_LOOP _Pragma("clang loop vectorize(enable)")
#else
#define NUMSAN_CLONE noinline, optimize("O3", "tree-vectorize")
#define NUMSAN_VECTOR_LOOP _Pragma("GCC ivdep")
#endif

#define NUMSAN_KERNEL_BODY inline __attribute__((always_inline))

/// Defines `result name parameters`, which calls the last argument, a NUMSAN_KERNEL_BODY, compiled for the instruction
/// set in use. `arguments` are the names of the parameters. Clones cannot be templates.
#if defined(__x86_64__)
#define NUMSAN_KERNEL(result, name, parameters, arguments, ...)                                                   \
    __attribute__((NUMSAN_CLONE)) result name##_baseline parameters { return __VA_ARGS__ arguments; }             \
    __attribute__((NUMSAN_CLONE, target("avx2"))) result name##_avx2 parameters { return __VA_ARGS__ arguments; } \
    __attribute__((NUMSAN_CLONE, target("avx512f,avx512bw,avx512cd,avx512dq,avx512vl")))                          \
    result name##_avx512 parameters {                                                                             \
        return __VA_ARGS__ arguments;                                                                             \
    }                                                                                                             \
    NUMSAN_KERNEL_BODY result name parameters {                                                                   \
        switch (::numsan::instruction_set_in_use) {                                                               \
            case ::numsan::InstructionSet::Avx512: return name##_avx512 arguments;                                \
            case ::numsan::InstructionSet::Avx2: return name##_avx2 arguments;                                    \
            default: return name##_baseline arguments;                                                            \
        }                                                                                                         \
    }
#else
#define NUMSAN_KERNEL(result, name, parameters, arguments, ...) \
    __attribute__((NUMSAN_CLONE)) result name parameters { return __VA_ARGS__ arguments; }
#endif

namespace numsan {

/// An unsigned integer as it lies in memory: any alignment, and whatever type the owner knows it by.
template <class T>
struct Packed {
    typedef T type __attribute__((aligned(1), may_alias));
};

}  // namespace numsan
