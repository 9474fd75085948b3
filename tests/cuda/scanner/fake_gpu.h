// A fake GPU for tests of the scanner: contexts, streams, tensors that a stream fills, and the hits that come back.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cuda/cuda_scanner.h"
#include "tests/fakes/cuda/control.h"

namespace numsan::gpu {

inline constexpr uint32_t kNan = 0x7fc00000, kOne = 0x3f800000;

/// What one block may look at, of scanners that are to need looks for tensors that a test scans quickly.
inline constexpr int64_t kFewBytes = 256 << 10;

/// float32 in device memory, flat.
class GpuTensor {
  public:
    explicit GpuTensor(int64_t elements) : GpuTensor(elements, allocated(elements)) {}
    GpuTensor(int64_t elements, CUdeviceptr memory) : data_(memory), sizes_{elements} {
        view.data = view.storage = view.storage_data = reinterpret_cast<const void*>(data_);
        view.storage_bytes = elements * 4;
        view.numel = elements;
        view.sizes = sizes_;
        view.strides = strides_;
        view.ndim = 1;
        view.dtype = DType::Float32;
        view.device = Device::Cuda;
        view.flags = kScannable;
    }
    GpuTensor(const GpuTensor&) = delete;

    /// What an op does: writes it, in the order of the stream.
    void fill(CUstream stream, uint32_t bits) {
        EXPECT_EQ(cuMemsetD32Async(data_, bits, size_t(sizes_[0]), stream), CUDA_SUCCESS);
    }
    void set(CUstream stream, int64_t at, uint32_t bits) {
        EXPECT_EQ(cuMemsetD32Async(data_ + size_t(at) * 4, bits, 1, stream), CUDA_SUCCESS);
    }
    CUdeviceptr address() const { return data_; }

    TensorView view{};

  private:
    static CUdeviceptr allocated(int64_t elements) {
        CUdeviceptr memory = 0;
        EXPECT_EQ(cuMemAlloc(&memory, size_t(elements) * 4), CUDA_SUCCESS);
        return memory;
    }

    const CUdeviceptr data_;
    int64_t sizes_[1];
    int64_t strides_[1] = {1};
};

/// A storage as StorageApi lends it.
struct Storage {
    std::atomic<const void*> data{nullptr};
    std::atomic<int64_t> bytes{0};
    std::atomic<bool> lendable{true};
    std::atomic<int> pinned{0}, unpinned{0};
    std::function<void()> when_given_back;

    int held() const { return pinned - unpinned; }
    void lie_in(TensorView& view) {
        data = view.storage_data;
        bytes = view.storage_bytes;
        view.storage = this;
    }
};

inline const StorageApi kStorages{
    [](const void*) { ADD_FAILURE() << "nothing is held weakly"; },
    [](const void*) { ADD_FAILURE() << "nothing is held weakly"; },
    [](const void* storage, const void** data, int64_t* bytes) {
        auto& s = *static_cast<Storage*>(const_cast<void*>(storage));
        if (!s.lendable) return false;
        ++s.pinned;
        *data = s.data;
        *bytes = s.bytes;
        return true;
    },
    [](const void* storage) {
        auto& s = *static_cast<Storage*>(const_cast<void*>(storage));
        ++s.unpinned;
        if (s.when_given_back) s.when_given_back();
    },
};

struct Found {
    uint64_t sequence;
    uint64_t replay;
    Health health;
    int inputs;
};

class ScannerTest : public testing::Test {
  protected:
    void SetUp() override {
        fake_cuda::reset();
        fake_cuda::set_devices(2);
        ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
        ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
        ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
        ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    }
    void TearDown() override { fake_cuda::reset(); }

    /// One output, to be scanned at once.
    void scan(CudaScanner& scanner, const GpuTensor& tensor, uint64_t sequence, CUstream on) {
        ScanRequest request = request_of(tensor, sequence, on);
        scanner.scan(request);
    }
    void scan_later(CudaScanner& scanner, const GpuTensor& tensor, uint64_t sequence, CUstream on, Storage& storage) {
        ScanRequest request = request_of(tensor, sequence, on);
        TensorView view = tensor.view;
        storage.lie_in(view);
        request.outputs = &view;
        request.storages = &kStorages;
        scanner.scan(request);
    }
    ScanRequest request_of(const GpuTensor& tensor, uint64_t sequence, CUstream on) {
        ScanRequest request;
        request.where = {context, on};
        request.outputs = &tensor.view;
        request.output_count = 1;
        request.sequence = sequence;
        return request;
    }

    static std::vector<Found> poll(CudaScanner& scanner) {
        std::vector<Found> found;
        const auto take = [&](const Hit& hit) {
            found.push_back({hit.sequence, hit.replay, hit.health, hit.count - 1});
        };
        scanner.poll(take);
        scanner.poll_replays(take);
        return found;
    }
    static uint64_t skipped(const CudaScanner& scanner, SkipReason why) {
        return scanner.counters().skipped[static_cast<int>(why)];
    }
    std::vector<Found> finish(CudaScanner& scanner) {
        scanner.flush_all();
        EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
        return poll(scanner);
    }

    CUcontext context = nullptr;
    CUstream stream = nullptr;
};

}  // namespace numsan::gpu
