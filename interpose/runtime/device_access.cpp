#include "interpose/runtime/device_access.h"

#include <algorithm>

#ifdef NUMSAN_CUDA
#include "cuda/cuda_device_scanner.h"
#endif

namespace numsan {
namespace {

/// A tensor of the event that is on a device; one with memory, where there is one.
const TensorView* on_device(const OpEvent& event) {
    const TensorView* found = nullptr;
    const auto look = [&](const TensorView& tensor) {
        if (tensor.device == Device::Cpu || (found != nullptr && found->storage_data != nullptr)) return;
        found = &tensor;
    };
    for (int32_t i = 0; i < event.output_count; ++i) look(event.outputs[i]);
    for (int32_t i = 0; i < event.input_count; ++i) look(event.inputs[i]);
    return found;
}

bool in_cuda_memory([[maybe_unused]] const TensorView& tensor) noexcept {
#ifdef NUMSAN_CUDA
    return is_cuda_memory(tensor.storage_data);
#else
    return false;
#endif
}

}  // namespace

bool ForeignMemory::leaves_to_cuda(const TensorView& tensor) noexcept {
    if (tensor.device != Device::Other || tensor.storage_data == nullptr) return true;
    int answer = answer_.load(std::memory_order_relaxed);
    if (answer == Unknown) {
        answer = in_cuda_memory(tensor) ? InCuda : Elsewhere;
        answer_.store(answer, std::memory_order_relaxed);
    }
    return answer == InCuda;
}

bool ForeignMemory::leaves_to_cuda(const OpEvent& event) noexcept {
    const auto leaves = [this](const TensorView& tensor) { return leaves_to_cuda(tensor); };
    return std::all_of(event.outputs, event.outputs + event.output_count, leaves) &&
           std::all_of(event.inputs, event.inputs + event.input_count, leaves);
}

DeviceScanner* make_device_scanner(const OpEvent& first, std::string& why) {
    const TensorView* tensor = on_device(first);
    if (tensor == nullptr) return nullptr;
#ifdef NUMSAN_CUDA
    // A backend outside torch may keep its tensors in CUDA memory, or anywhere.
    if (tensor->device == Device::Other && !is_cuda_memory(tensor->storage_data)) {
        why = "they are not in CUDA memory";
        return nullptr;
    }
    if (!first.queue.known) {
        why = "this torch does not report the streams of its operators (2.11 does)";
        return nullptr;
    }
    std::unique_ptr<DeviceScanner> scanner = make_cuda_scanner();
    if (scanner->reason()[0] != '\0') {
        why = scanner->reason();
        return nullptr;
    }
    return scanner.release();
#else
    why = "numsan was built without nvcc, so without its CUDA kernels";
    return nullptr;
#endif
}

}  // namespace numsan
