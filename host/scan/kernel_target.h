// How the scan kernels are compiled: optimised whatever the build type, one clone per instruction set where the
// toolchain can.
#pragma once

#include <cstdint>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NUMSAN_KERNEL_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define NUMSAN_KERNEL_SANITIZED 1
#endif
#endif

// Clones are chosen by an ifunc, whose resolver runs before a sanitizer's runtime is ready; only glibc has ifuncs.
#if defined(__GNUC__) && !defined(__clang__)
#if defined(__x86_64__) && defined(__GLIBC__) && __GNUC__ >= 12 && !defined(NUMSAN_KERNEL_SANITIZED)
#define NUMSAN_KERNEL \
    __attribute__((noinline, target_clones("arch=x86-64-v4", "avx2", "default"), optimize("O3", "tree-vectorize")))
#else
#define NUMSAN_KERNEL __attribute__((noinline, optimize("O3", "tree-vectorize")))
#endif
#define NUMSAN_VECTOR_LOOP _Pragma("GCC ivdep")
#elif defined(__clang__)
#define NUMSAN_KERNEL __attribute__((noinline))
#define NUMSAN_VECTOR_LOOP _Pragma("clang loop vectorize(enable)")
#else
#define NUMSAN_KERNEL
#define NUMSAN_VECTOR_LOOP
#endif

#define NUMSAN_KERNEL_BODY inline __attribute__((always_inline))

namespace numsan {

/// An unsigned integer as it lies in memory: any alignment, and whatever type the owner knows it by.
template <class T>
struct Packed {
    typedef T type __attribute__((aligned(1), may_alias));
};

}  // namespace numsan
