// What of CUPTI's C interface (13.0, cupti_callbacks.h and cupti_result.h) is used. Written down here, as numsan is
// built where there is no toolkit; tests/fakes/cupti/layout_check.cpp compares it with the toolkit's own headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numsan::cupti {

using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kMultipleSubscribers = 39;

inline constexpr int kDriverApi = 1;  ///< callback domain
inline constexpr int kExit = 1;       ///< callback site

inline constexpr size_t kOldSubscriberNameBytes = 64;  ///< CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN, at least

using Subscriber = void*;

/// Valid only during the callback.
struct CallbackData {
    int site;
    const char* function_name;
    const void* function_params;
    void* return_value;       ///< of the driver's domain, at kExit: a CUresult
    const char* symbol_name;  ///< of a launch: the kernel's mangled name
    void* context;
    uint32_t context_uid;
    uint64_t* correlation_data;
    uint32_t correlation_id;
};

/// generated_cuda_meta.h: what cuLaunchKernel is called with, and cuLaunchCooperativeKernel but for its last argument.
struct LaunchParams {
    void* function;
    unsigned grid[3], block[3], shared_bytes;
    void* stream;
    void** arguments;
};

/// The beginning of a CUlaunchConfig.
struct LaunchConfig {
    unsigned grid[3], block[3], shared_bytes;
    void* stream;
};

/// generated_cuda_meta.h: what cuLaunchKernelEx is called with.
struct LaunchExParams {
    const LaunchConfig* config;
    void* function;
    void** arguments;
    void** extra;
};

// generated_cuda_meta.h: the beginnings of what calls for memory are called with, CUdeviceptr being a number.

/// cuMemAlloc and its like.
struct AllocateParams {
    const uint64_t* address;
    size_t bytes;
};
/// cuMemAllocPitch.
struct AllocateRowsParams {
    const uint64_t* address;
    const size_t* pitch;
    size_t width, height;
};
/// cuMemFree and its like, and calls that set memory.
struct AddressParams {
    uint64_t address;
};
/// Copies of bytes.
struct CopyParams {
    uint64_t to, from;
    size_t bytes;
};
struct CopyInStreamParams {
    CopyParams copy;
    void* stream;
};

/// CU_STREAM_PER_THREAD: a thread's own default stream.
inline void* const kThreadStream = reinterpret_cast<void*>(uintptr_t(2));

struct SubscriberParams {
    size_t struct_size;
    const char* subscriber_name;
    char* old_subscriber_name;
    size_t old_subscriber_size;
};

using Callback = void (*)(void* data, int domain, uint32_t id, const void* callback_data);
using Subscribe = Result (*)(Subscriber*, Callback, void* data, SubscriberParams*);
using Unsubscribe = Result (*)(Subscriber);
using EnableCallback = Result (*)(uint32_t enable, Subscriber, int domain, uint32_t id);
using ResultString = Result (*)(Result, const char** text);

}  // namespace numsan::cupti
