// One source, two targets: nvcc builds the kernels, a host compiler builds the same code as blocks of one thread.
#pragma once

#include <cstdint>
#include <cstring>

#include "cuda/kernel/scan_policy.h"

#if !defined(__CUDACC__)
#include <bit>
#include <chrono>
#endif

#if defined(__CUDACC__)
#define NUMSAN_DEVICE __device__ __forceinline__
#define NUMSAN_UNROLL _Pragma("unroll")
#define NUMSAN_NO_UNROLL _Pragma("unroll 1")
#else
#define NUMSAN_DEVICE inline
#define NUMSAN_UNROLL
#define NUMSAN_NO_UNROLL
#endif

namespace numsan::gpu {

#if defined(__CUDACC__)
using Packet = uint4;
NUMSAN_DEVICE uint32_t thread_rank() { return threadIdx.x; }
NUMSAN_DEVICE constexpr uint32_t block_threads() { return kBlockThreads; }
NUMSAN_DEVICE void block_barrier() { __syncthreads(); }

// Over the threads of a warp, all of which take part: valid in all of them.
NUMSAN_DEVICE uint64_t warp_sum(uint64_t v) {
    NUMSAN_NO_UNROLL
    for (int distance = 16; distance > 0; distance >>= 1) v += __shfl_xor_sync(~0u, v, distance);
    return v;
}
NUMSAN_DEVICE uint64_t warp_max(uint64_t v) {
    NUMSAN_NO_UNROLL
    for (int distance = 16; distance > 0; distance >>= 1) {
        const uint64_t other = __shfl_xor_sync(~0u, v, distance);
        v = other > v ? other : v;
    }
    return v;
}
NUMSAN_DEVICE bool warp_leader() { return (threadIdx.x & 31u) == 0; }
NUMSAN_DEVICE uint32_t lowest_bit(uint64_t v) { return static_cast<uint32_t>(__ffsll(static_cast<long long>(v)) - 1); }

/// The device's clock. It moves on every microsecond or so.
NUMSAN_DEVICE uint64_t nanoseconds() {
    uint64_t now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

// A streaming load: nothing of it is worth a line of L1, and it stays in L2 for the op's consumer.
NUMSAN_DEVICE Packet load_packet(const void* p) {
    Packet v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}
template <class T>
NUMSAN_DEVICE T load_lane(const void* p) {
    return *static_cast<const T*>(p);
}
#else
struct Packet {
    uint32_t x, y, z, w;
};
inline uint32_t thread_rank() { return 0; }
inline constexpr uint32_t block_threads() { return 1; }
inline void block_barrier() {}
inline uint64_t warp_sum(uint64_t v) { return v; }
inline uint64_t warp_max(uint64_t v) { return v; }
inline bool warp_leader() { return true; }
inline uint32_t lowest_bit(uint64_t v) { return static_cast<uint32_t>(std::countr_zero(v)); }
inline uint64_t nanoseconds() {
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}
// The device faults on an address that is not a multiple of the load's size; so does this.
template <class T>
inline T load_aligned(const void* p) {
    if (reinterpret_cast<uintptr_t>(p) % sizeof(T) != 0) __builtin_trap();
    T v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
inline Packet load_packet(const void* p) { return load_aligned<Packet>(p); }
template <class T>
inline T load_lane(const void* p) {
    return load_aligned<T>(p);
}
#endif

}  // namespace numsan::gpu
