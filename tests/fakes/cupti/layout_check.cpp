// Whether what numsan and the fakes write down of CUPTI is what the toolkit's headers say. Nothing here runs.
#define __CUDA_API_VERSION_INTERNAL  // the parameters of the oldest calls need the oldest types
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <generated_cuda_meta.h>

#include <type_traits>

#include "interpose/cupti/cupti_abi.h"
#include "tests/fakes/cuda/launch_watch.h"

namespace abi = numsan::cupti;

#define SAME(ours, our_member, theirs, their_member)                              \
    static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member) && \
                  sizeof(ours::our_member) == sizeof(theirs::their_member))

static_assert(sizeof(abi::CallbackData) == sizeof(CUpti_CallbackData));
SAME(abi::CallbackData, site, CUpti_CallbackData, callbackSite);
SAME(abi::CallbackData, function_name, CUpti_CallbackData, functionName);
SAME(abi::CallbackData, function_params, CUpti_CallbackData, functionParams);
SAME(abi::CallbackData, return_value, CUpti_CallbackData, functionReturnValue);
SAME(abi::CallbackData, symbol_name, CUpti_CallbackData, symbolName);
SAME(abi::CallbackData, context, CUpti_CallbackData, context);
SAME(abi::CallbackData, context_uid, CUpti_CallbackData, contextUid);
SAME(abi::CallbackData, correlation_data, CUpti_CallbackData, correlationData);
SAME(abi::CallbackData, correlation_id, CUpti_CallbackData, correlationId);

static_assert(sizeof(abi::SubscriberParams) == CUpti_SubscriberParams_STRUCT_SIZE);
SAME(abi::SubscriberParams, struct_size, CUpti_SubscriberParams, structSize);
SAME(abi::SubscriberParams, subscriber_name, CUpti_SubscriberParams, subscriberName);
SAME(abi::SubscriberParams, old_subscriber_name, CUpti_SubscriberParams, oldSubscriberName);
SAME(abi::SubscriberParams, old_subscriber_size, CUpti_SubscriberParams, oldSubscriberSize);
static_assert(abi::kOldSubscriberNameBytes == CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);

static_assert(abi::kSuccess == CUPTI_SUCCESS);
static_assert(abi::kMultipleSubscribers == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
static_assert(abi::kDriverApi == CUPTI_CB_DOMAIN_DRIVER_API && abi::kExit == CUPTI_API_EXIT);
static_assert(sizeof(abi::Result) == sizeof(CUptiResult) && sizeof(CUpti_CallbackDomain) == sizeof(int) &&
              sizeof(CUpti_SubscriberHandle) == sizeof(abi::Subscriber) && std::is_same_v<CUpti_CallbackId, uint32_t>);

// Those of cooperative launches and of per-thread streams are the same, but for an argument that is not read.
static_assert(offsetof(abi::LaunchParams, grid) == offsetof(cuLaunchKernel_params, gridDimX) &&
              offsetof(abi::LaunchParams, block) == offsetof(cuLaunchKernel_params, blockDimX) &&
              offsetof(abi::LaunchParams, grid) == offsetof(cuLaunchCooperativeKernel_params, gridDimX) &&
              offsetof(abi::LaunchParams, block) == offsetof(cuLaunchCooperativeKernel_params, blockDimX));
SAME(abi::LaunchParams, function, cuLaunchKernel_params, f);
SAME(abi::LaunchParams, shared_bytes, cuLaunchKernel_params, sharedMemBytes);
SAME(abi::LaunchParams, stream, cuLaunchKernel_params, hStream);
SAME(abi::LaunchParams, arguments, cuLaunchKernel_params, kernelParams);
SAME(abi::LaunchParams, arguments, cuLaunchCooperativeKernel_params, kernelParams);
SAME(abi::LaunchParams, shared_bytes, cuLaunchCooperativeKernel_params, sharedMemBytes);
SAME(abi::LaunchParams, stream, cuLaunchCooperativeKernel_params, hStream);
SAME(abi::LaunchParams, stream, cuLaunchKernel_ptsz_params, hStream);
SAME(abi::LaunchParams, stream, cuLaunchCooperativeKernel_ptsz_params, hStream);
static_assert(sizeof(abi::LaunchExParams) == sizeof(cuLaunchKernelEx_params));
SAME(abi::LaunchExParams, config, cuLaunchKernelEx_params, config);
SAME(abi::LaunchExParams, config, cuLaunchKernelEx_ptsz_params, config);
SAME(abi::LaunchExParams, function, cuLaunchKernelEx_params, f);
SAME(abi::LaunchExParams, arguments, cuLaunchKernelEx_params, kernelParams);
static_assert(offsetof(abi::LaunchConfig, grid) == offsetof(CUlaunchConfig, gridDimX) &&
              offsetof(abi::LaunchConfig, block) == offsetof(CUlaunchConfig, blockDimX));
SAME(abi::LaunchConfig, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME(abi::LaunchConfig, stream, CUlaunchConfig, hStream);

#define NUMSAN_LAUNCH_CALLBACK(call, number, what) static_assert(CUPTI_DRIVER_TRACE_CBID_##call == number);
#include "interpose/cupti/launch_callbacks.def"
#undef NUMSAN_LAUNCH_CALLBACK

#define NUMSAN_MEMORY_CALLBACK(call, number, what) static_assert(CUPTI_DRIVER_TRACE_CBID_##call == number);
#include "interpose/cupti/memory_callbacks.def"
#undef NUMSAN_MEMORY_CALLBACK

static_assert(sizeof(CUdeviceptr) == sizeof(uint64_t) && sizeof(void*) == sizeof(uint64_t));
#define ALLOCATES(theirs)                             \
    SAME(abi::AllocateParams, address, theirs, dptr); \
    SAME(abi::AllocateParams, bytes, theirs, bytesize)
ALLOCATES(cuMemAlloc_v2_params);
ALLOCATES(cuMemAllocManaged_params);
ALLOCATES(cuMemAllocAsync_params);
ALLOCATES(cuMemAllocAsync_ptsz_params);
ALLOCATES(cuMemAllocFromPoolAsync_params);
ALLOCATES(cuMemAllocFromPoolAsync_ptsz_params);
SAME(abi::AllocateRowsParams, address, cuMemAllocPitch_v2_params, dptr);
SAME(abi::AllocateRowsParams, pitch, cuMemAllocPitch_v2_params, pPitch);
SAME(abi::AllocateRowsParams, height, cuMemAllocPitch_v2_params, Height);
SAME(abi::AddressParams, address, cuMemFree_v2_params, dptr);
SAME(abi::AddressParams, address, cuMemFreeAsync_params, dptr);
SAME(abi::AddressParams, address, cuMemFreeAsync_ptsz_params, dptr);
#define SETS(theirs) SAME(abi::AddressParams, address, theirs, dstDevice)
SETS(cuMemsetD8_v2_params);
SETS(cuMemsetD16_v2_params);
SETS(cuMemsetD32_v2_params);
SETS(cuMemsetD2D8_v2_params);
SETS(cuMemsetD2D16_v2_params);
SETS(cuMemsetD2D32_v2_params);
SETS(cuMemsetD8Async_params);
SETS(cuMemsetD16Async_params);
SETS(cuMemsetD32Async_params);
SETS(cuMemsetD2D8Async_params);
SETS(cuMemsetD2D16Async_params);
SETS(cuMemsetD2D32Async_params);
#define COPIES(theirs, to_member, from_member)        \
    SAME(abi::CopyParams, to, theirs, to_member);     \
    SAME(abi::CopyParams, from, theirs, from_member); \
    SAME(abi::CopyParams, bytes, theirs, ByteCount)
COPIES(cuMemcpy_params, dst, src);
COPIES(cuMemcpyHtoD_v2_params, dstDevice, srcHost);
COPIES(cuMemcpyDtoH_v2_params, dstHost, srcDevice);
COPIES(cuMemcpyDtoD_v2_params, dstDevice, srcDevice);
COPIES(cuMemcpyAsync_params, dst, src);
COPIES(cuMemcpyHtoDAsync_v2_params, dstDevice, srcHost);
COPIES(cuMemcpyDtoHAsync_v2_params, dstHost, srcDevice);
COPIES(cuMemcpyDtoDAsync_v2_params, dstDevice, srcDevice);
SAME(abi::CopyInStreamParams, stream, cuMemcpyAsync_params, hStream);
SAME(abi::CopyInStreamParams, stream, cuMemcpyHtoDAsync_v2_params, hStream);
SAME(abi::CopyInStreamParams, stream, cuMemcpyDtoHAsync_v2_params, hStream);
SAME(abi::CopyInStreamParams, stream, cuMemcpyDtoDAsync_v2_params, hStream);

static_assert(sizeof(fake_cuda::KernelArguments) == sizeof(cuLaunchKernel_params));
SAME(fake_cuda::KernelArguments, function, cuLaunchKernel_params, f);
static_assert(offsetof(fake_cuda::KernelArguments, grid) == offsetof(cuLaunchKernel_params, gridDimX) &&
              offsetof(fake_cuda::KernelArguments, block) == offsetof(cuLaunchKernel_params, blockDimX));
SAME(fake_cuda::KernelArguments, shared, cuLaunchKernel_params, sharedMemBytes);
SAME(fake_cuda::KernelArguments, stream, cuLaunchKernel_params, hStream);
SAME(fake_cuda::KernelArguments, parameters, cuLaunchKernel_params, kernelParams);
SAME(fake_cuda::KernelArguments, extra, cuLaunchKernel_params, extra);
static_assert(sizeof(fake_cuda::KernelExArguments) == sizeof(cuLaunchKernelEx_params));
SAME(fake_cuda::KernelExArguments, config, cuLaunchKernelEx_params, config);
SAME(fake_cuda::KernelExArguments, function, cuLaunchKernelEx_params, f);
SAME(fake_cuda::KernelExArguments, parameters, cuLaunchKernelEx_params, kernelParams);
static_assert(sizeof(fake_cuda::GraphArguments) == sizeof(cuGraphLaunch_params));
SAME(fake_cuda::GraphArguments, graph, cuGraphLaunch_params, hGraph);
SAME(fake_cuda::GraphArguments, stream, cuGraphLaunch_params, hStream);
SAME(fake_cuda::AllocateArguments, bytes, cuMemAlloc_v2_params, bytesize);
SAME(fake_cuda::AddressArguments, address, cuMemFree_v2_params, dptr);
SAME(fake_cuda::SetArguments, stream, cuMemsetD32Async_params, hStream);
SAME(fake_cuda::SetArguments, count, cuMemsetD8Async_params, N);
SAME(fake_cuda::CopyArguments, stream, cuMemcpyAsync_params, hStream);
SAME(fake_cuda::CopyArguments, from, cuMemcpyDtoHAsync_v2_params, srcDevice);
SAME(fake_cuda::CopyArguments, to, cuMemcpyHtoDAsync_v2_params, dstDevice);
