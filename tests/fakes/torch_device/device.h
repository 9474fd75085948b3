// A torch device on PrivateUse1 whose work is late: operators run at once on a host-side shadow of the device's memory,
// and what they wrote reaches the device's own memory (cuMemAlloc) only when the stream gets there. Internal.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <cuda.h>

#include <functional>
#include <vector>

#define FAKEGPU_CHECK(call)                                                                           \
    do {                                                                                              \
        const CUresult result_ = (call);                                                              \
        TORCH_CHECK(result_ == CUDA_SUCCESS, #call, " failed: CUresult ", static_cast<int>(result_)); \
    } while (0)

namespace fakegpu {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

// --- devices and streams (stream.cpp) [MT]

c10::DeviceIndex device_count() noexcept;  ///< FAKEGPU_DEVICES, default 2
c10::DeviceIndex current_device() noexcept;
/// Makes the device's primary context the thread's. Throws in a child of fork, where the driver's threads are gone.
void bind(c10::DeviceIndex device);
bool in_forked_child() noexcept;
bool has_context(c10::DeviceIndex device) noexcept;

c10::Stream current_stream(c10::DeviceIndex device);
/// Null (the legacy stream) for stream 0; its context has to be current then.
CUstream handle(const c10::Stream& stream);
/// `work` runs on the stream in order, each time after the delay. Recorded by a capture it runs at each replay.
void enqueue(const c10::Stream& stream, std::function<void()> work);
bool launches_kernels();  ///< FAKEGPU_KERNELS
/// The same; where kernels are launched as one of that name, with a thread for each of `items`.
void launch(const c10::Stream& stream, const char* kernel, size_t items, std::function<void()> work);
void synchronize(const c10::Stream& stream);
void synchronize_all();  ///< of all devices that were used
/// Work given to `waiter` from now on runs after what `waited` was given until now.
void order(const c10::Stream& waiter, const c10::Stream& waited);

// --- memory (memory.cpp) [MT]

/// One piece of device memory and its shadow. Both keep what their last owner left: nothing is cleared.
struct Block {
    c10::DeviceIndex device;
    c10::StreamId stream;  // that it was allocated on, and goes back to
    char* memory;
    char* shadow;
    size_t capacity;
    c10::intrusive_ptr<c10::StorageImpl> state;  // the shadow as a CPU storage; of one allocation
    std::vector<c10::Stream> users;              // other streams, by record_stream
};

c10::Allocator* allocator();
c10::Allocator* pinned_allocator();
bool is_pinned(const void* data);
/// Null for a storage without memory; throws for memory that is not this device's.
Block* block_of(const c10::Storage& storage);
/// The block is not reused before what the stream was given until it is freed.
void record_stream(const c10::DataPtr& data, const c10::Stream& stream);
/// Gives unused blocks back to the driver.
void empty_cache();
/// After all streams: bytes of live storages in which device memory differs from its shadow. No other thread may submit
/// meanwhile.
size_t count_unequal_bytes();

// --- kernels (kernels.cpp) [MT]

extern const char* const kCopyKernel;
/// What a kernel does with its argument.
void run_launched(void* job);
/// Those that an operator launches on a GPU, in order: one, or two for a reduction.
std::vector<const char*> kernels_of(const c10::OperatorHandle& op);

// --- operators on shadows (batch.cpp, shadow.cpp) [MT]

/// Bytes taken from shadows now, to be copied into device memory by the stream. One a call of an operator.
class Batch {
  public:
    void add(char* memory, const char* shadow, size_t bytes);
    /// The elements of `twin`, no byte between them.
    void add(const Block& block, const at::Tensor& twin);
    /// As the kernel `kernel`; see launch().
    void submit(const c10::Stream& stream, const char* kernel = kCopyKernel) &&;

  private:
    struct Piece {
        char* memory;
        size_t bytes;
    };
    std::vector<Piece> pieces_;
    std::vector<char> bytes_;
};

/// A CPU tensor over the shadow: what the stream will have made of `tensor`. Other tensors are their own twins.
at::Tensor twin(const at::Tensor& tensor);
/// A CPU tensor over device memory: what the stream has made of it so far.
at::Tensor device_view(const at::Tensor& tensor);
/// After `twin` was written: follows its sizes, lets the storage grow, adds its elements.
void publish(const at::Tensor& tensor, const at::Tensor& twin, Batch& batch);
void resize_storage(const c10::Storage& storage, size_t bytes);

/// While it lives nothing that listens above the backends hears of operators: below a GPU's kernel there are none.
struct Quiet {
    Quiet();
    c10::impl::ExcludeDispatchKeyGuard keys;
    at::DisableRecordFunctionGuard records;
};

/// Runs `execute` on the stack with all device tensors replaced by twins, then makes the results device tensors again.
void run_on_shadow(const c10::OperatorHandle& op, torch::jit::Stack* stack,
                   const std::function<void(torch::jit::Stack*)>& execute);
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// --- random numbers (hooks.cpp)

/// The CPU generator behind a device's one.
at::Generator cpu_generator(const at::Generator& generator);
void register_hooks();

}  // namespace fakegpu
