#include "tests/gpu/probe/subject.h"

#include <algorithm>

namespace numsan::gpu::probe {

const DeviceState& Subject::state() {
    if (is_set_up_) return state_;
    state_.context = gpu().context;
    const Failure failure = set_up(driver, state_);
    if (failure.result != CUDA_SUCCESS) {
        state_ = DeviceState{};
        throw CallFailed(failure.call, failure.result);
    }
    is_set_up_ = true;
    return state_;
}

CudaScanner& Subject::scanner() {
    if (scanner_ != nullptr && !scanner_->is_off()) return *scanner_;
    scanner_ = std::make_unique<CudaScanner>();
    if (!scanner_->prepare(on(gpu().stream))) {
        const std::string reason = scanner_->reason();
        scanner_.reset();
        throw Wrong("no scanner of this context: " + reason);
    }
    return *scanner_;
}

size_t Subject::l2_bytes() const {
    int bytes = 0;
    const CUresult result = gpu().device_attribute(&bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, gpu().device);
    return result == CUDA_SUCCESS && bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

size_t Subject::fitting(size_t wanted, int copies) const {
    size_t free = 0, total = 0;
    check("cuMemGetInfo", gpu().memory_info(&free, &total));
    wanted = std::min(wanted, max_bytes);
    const size_t share = free / 10 * 9 / static_cast<size_t>(copies);
    while (wanted > share && wanted > 1024) wanted /= 2;
    return wanted / 256 * 256;
}

}  // namespace numsan::gpu::probe
