// What others offer to ask a tensor on the device whether all of it is finite, for tests/bench/cuda_scan.py. On the
// caller's stream; the answer is written to `answer` (device memory), where the interface allows it without a wait.
#include <thrust/execution_policy.h>
#include <thrust/logical.h>

#include <cstdint>
#include <cub/device/device_reduce.cuh>

namespace {

template <class Word, Word kExponent>
struct NotFinite {
    __host__ __device__ unsigned operator()(Word word) const { return (word & kExponent) == kExponent; }
};
using NotFinite32 = NotFinite<uint32_t, 0x7f800000u>;
using NotFinite16 = NotFinite<uint16_t, 0x7c00u>;
using NotFiniteBf16 = NotFinite<uint16_t, 0x7f80u>;

struct Max {
    __host__ __device__ unsigned operator()(unsigned a, unsigned b) const { return a > b ? a : b; }
};

template <class Word, class Check>
int cub_reduce(void* scratch, size_t* bytes, const void* data, int64_t elements, unsigned* answer,
               cudaStream_t stream) {
    const auto* first = static_cast<const Word*>(data);
    return static_cast<int>(
        cub::DeviceReduce::TransformReduce(scratch, *bytes, first, answer, elements, Max{}, Check{}, 0u, stream));
}

template <class Word, class Check>
bool thrust_any(const void* data, int64_t elements, cudaStream_t stream) {
    const auto* first = static_cast<const Word*>(data);
    return thrust::any_of(thrust::cuda::par.on(stream), first, first + elements, Check{});
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))
/// `type`: 0 float32, 1 float16, 2 bfloat16; -1 for another.
#define OF_TYPE(call32, call16, callbf) return type == 0 ? call32 : type == 1 ? call16 : type == 2 ? callbf : -1

/// As cub::DeviceReduce: with a null `scratch` only its size is set. 0, or a cudaError_t.
EXPORT int numsan_peer_cub(void* scratch, size_t* bytes, const void* data, int64_t elements, int type, unsigned* answer,
                           void* on) {
    const auto stream = static_cast<cudaStream_t>(on);
    OF_TYPE((cub_reduce<uint32_t, NotFinite32>(scratch, bytes, data, elements, answer, stream)),
            (cub_reduce<uint16_t, NotFinite16>(scratch, bytes, data, elements, answer, stream)),
            (cub_reduce<uint16_t, NotFiniteBf16>(scratch, bytes, data, elements, answer, stream)));
}

/// Waits for the stream. 0 or 1.
EXPORT int numsan_peer_thrust(const void* data, int64_t elements, int type, void* on) {
    const auto stream = static_cast<cudaStream_t>(on);
    OF_TYPE((thrust_any<uint32_t, NotFinite32>(data, elements, stream)),
            (thrust_any<uint16_t, NotFinite16>(data, elements, stream)),
            (thrust_any<uint16_t, NotFiniteBf16>(data, elements, stream)));
}
