// Words that several blocks, or the device and the host, share. On the host every operation is sequentially ordered,
// so the thread sanitizer can follow what the fences say on the device.
#pragma once

#include <cstdint>

#include "cuda/kernel/target.cuh"

#if defined(__CUDACC__)
#include <cuda/atomic>
#else
#include <atomic>
#endif

namespace numsan::gpu {

#if defined(__CUDACC__)
using Atomic64 = unsigned long long;

NUMSAN_DEVICE uint32_t atomic_add(uint32_t* p, uint32_t v) { return atomicAdd(p, v); }
NUMSAN_DEVICE uint64_t atomic_add(uint64_t* p, uint64_t v) { return atomicAdd(reinterpret_cast<Atomic64*>(p), v); }
NUMSAN_DEVICE void atomic_or(uint32_t* p, uint32_t v) { atomicOr(p, v); }
NUMSAN_DEVICE void atomic_or(uint64_t* p, uint64_t v) { atomicOr(reinterpret_cast<Atomic64*>(p), v); }
NUMSAN_DEVICE void atomic_max(uint64_t* p, uint64_t v) { atomicMax(reinterpret_cast<Atomic64*>(p), v); }
NUMSAN_DEVICE uint64_t atomic_min(uint64_t* p, uint64_t v) { return atomicMin(reinterpret_cast<Atomic64*>(p), v); }
NUMSAN_DEVICE void atomic_max(int64_t* p, int64_t v) { atomicMax(reinterpret_cast<long long*>(p), v); }
NUMSAN_DEVICE void atomic_min(int64_t* p, int64_t v) { atomicMin(reinterpret_cast<long long*>(p), v); }
NUMSAN_DEVICE bool atomic_exchange_if(uint64_t* p, uint64_t expected, uint64_t v) {
    return atomicCAS(reinterpret_cast<Atomic64*>(p), expected, v) == expected;
}

/// Not from a stale line of L1, not reordered by the compiler.
template <class T>
NUMSAN_DEVICE T shared_load(const T* p) {
    return *static_cast<const volatile T*>(p);
}
template <class T>
NUMSAN_DEVICE void shared_store(T* p, T v) {
    *static_cast<volatile T*>(p) = v;
}
/// What the thread has done stays before it, and what it does then behind it, for who does the same: enough wherever
/// one thread says by a word that others are written.
NUMSAN_DEVICE void fence_device() { cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_device); }
NUMSAN_DEVICE void fence_system() { cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_system); }
/// Also keeps a load behind a store before it. Dearer by far.
NUMSAN_DEVICE void fence_store_load() { __threadfence_system(); }
#else
template <class T>
T atomic_add(T* p, T v) {
    return std::atomic_ref<T>(*p).fetch_add(v);
}
inline void atomic_or(uint32_t* p, uint32_t v) { std::atomic_ref<uint32_t>(*p).fetch_or(v); }
inline void atomic_or(uint64_t* p, uint64_t v) { std::atomic_ref<uint64_t>(*p).fetch_or(v); }
template <class T>
void atomic_max(T* p, T v) {
    std::atomic_ref<T> word(*p);
    T seen = word.load();
    while (seen < v && !word.compare_exchange_weak(seen, v)) {
    }
}
template <class T>
T atomic_min(T* p, T v) {
    std::atomic_ref<T> word(*p);
    T seen = word.load();
    while (v < seen && !word.compare_exchange_weak(seen, v)) {
    }
    return seen;
}
inline bool atomic_exchange_if(uint64_t* p, uint64_t expected, uint64_t v) {
    return std::atomic_ref<uint64_t>(*p).compare_exchange_strong(expected, v);
}
template <class T>
T shared_load(const T* p) {
    return std::atomic_ref<T>(*const_cast<T*>(p)).load();
}
template <class T>
void shared_store(T* p, T v) {
    std::atomic_ref<T>(*p).store(v);
}
inline void fence_device() {}
inline void fence_system() {}
inline void fence_store_load() {}
#endif

}  // namespace numsan::gpu
