// What tests tell the fake libcuda.so.1, and ask of it. Not part of the driver's API. [MT]
#pragma once

#include <cstdint>

#define FAKE_CUDA_API __attribute__((visibility("default")))

namespace fake_cuda {

/// An image that cuModuleLoadData takes besides numsan's fatbin. Its kernels are functions that the program exports,
/// void name(void* argument), which a launch calls once, when the stream gets there. Its only parameter is a pointer,
/// unless the program exports const int name_sizes[] too: bytes of each parameter, then 0. Then it is called with
/// void** arguments, as a launch has them.
inline constexpr char kHostImage[] = "host functions";

/// As after loading: one device, driver 13.0, no script. Destroys every context; no other thread may be inside.
FAKE_CUDA_API void reset();

FAKE_CUDA_API void set_devices(int count);
FAKE_CUDA_API void set_driver_version(int version);  ///< as cuDriverGetVersion: 12010 is 12.1

/// The next `times` calls of `name` (without _v2) return `result` (a CUresult), after `skip` that go through.
FAKE_CUDA_API void fail(const char* name, int result, int skip = 0, int times = 1 << 30);
/// cuGetProcAddress does not know `name`.
FAKE_CUDA_API void hide(const char* name);
/// Calls of `name` do not go on while it is stalled, as those of a driver whose queues are full.
FAKE_CUDA_API void stall(const char* name, bool stalled);
/// Every call in the context returns `result` from now on, and its streams run nothing more.
FAKE_CUDA_API void make_sticky(void* context, int result);

/// Streams run nothing while held: what is submitted waits.
FAKE_CUDA_API void hold(bool held);
/// Launches count and return, and run nothing: to measure what the caller costs.
FAKE_CUDA_API void skip_kernels(bool skip);
/// Host threads per launch, and the seed of the blocks' order (0: as they come).
FAKE_CUDA_API void set_grid(int threads, uint32_t shuffle);

/// Calls of `name` since the last reset; of everything with null.
FAKE_CUDA_API uint64_t calls(const char* name);

}  // namespace fake_cuda
