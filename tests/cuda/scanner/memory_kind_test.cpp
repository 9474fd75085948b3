// Whose memory an address is, however it was allocated; and scans of memory that comes and goes in the order of a
// stream, or that several pieces make up.
#include <unistd.h>

#include "cuda/cuda_device_scanner.h"
#include "tests/cuda/scanner/fake_gpu.h"

namespace numsan::gpu {
namespace {

const void* at(CUdeviceptr address) { return reinterpret_cast<const void*>(address); }

class MemoryKind : public ScannerTest {};

TEST_F(MemoryKind, ADevicesOwn) {
    const GpuTensor tensor(100);
    EXPECT_TRUE(is_cuda_memory(at(tensor.address())));
    EXPECT_TRUE(is_cuda_memory(at(tensor.address() + 399)));
    EXPECT_FALSE(is_cuda_memory(at(tensor.address() + 400)));
    EXPECT_FALSE(is_pinned_memory(at(tensor.address())));
}

TEST_F(MemoryKind, TheHosts) {
    void* pinned = nullptr;
    ASSERT_EQ(cuMemHostAlloc(&pinned, 64, 0), CUDA_SUCCESS);
    int own = 0;
    EXPECT_TRUE(is_pinned_memory(pinned));
    EXPECT_FALSE(is_cuda_memory(pinned));
    EXPECT_FALSE(is_pinned_memory(&own));
    EXPECT_FALSE(is_cuda_memory(&own));
    EXPECT_FALSE(is_cuda_memory(nullptr));
}

TEST_F(MemoryKind, InTheOrderOfAStream) {
    CUdeviceptr memory = 0;
    ASSERT_EQ(cuMemAllocAsync(&memory, 400, stream), CUDA_SUCCESS);
    EXPECT_TRUE(is_cuda_memory(at(memory)));
    CudaScanner scanner;
    ASSERT_TRUE(scanner.prepare({context, stream}));
    fake_cuda::hold(true);
    GpuTensor tensor(100, memory);
    tensor.fill(stream, kNan);
    scan(scanner, tensor, 1, stream);
    ASSERT_EQ(cuMemFreeAsync(memory, stream), CUDA_SUCCESS);
    EXPECT_FALSE(is_cuda_memory(at(memory)));
    fake_cuda::hold(false);
    const std::vector<Found> found = finish(scanner);
    ASSERT_EQ(found.size(), 1u) << "it was read before it was freed";
    EXPECT_EQ(found[0].health.nan, 100);
}

/// Two pieces side by side at the end of addresses that were reserved for more.
class Segment {
  public:
    Segment() : piece_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
        EXPECT_EQ(cuMemAddressReserve(&begin_, 4 * piece_, 0, 0, 0), CUDA_SUCCESS);
        for (size_t i = 1; i < 3; ++i) {
            CUmemAllocationProp wanted{};
            wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
            wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
            CUmemGenericAllocationHandle handle = 0;
            EXPECT_EQ(cuMemCreate(&handle, piece_, &wanted, 0), CUDA_SUCCESS);
            EXPECT_EQ(cuMemMap(piece(i), piece_, 0, handle, 0), CUDA_SUCCESS);
            EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
        }
        CUmemAccessDesc access{};
        access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        EXPECT_EQ(cuMemSetAccess(piece(1), 2 * piece_, &access, 1), CUDA_SUCCESS);
    }
    ~Segment() { EXPECT_EQ(cuMemAddressFree(begin_, 4 * piece_), CUDA_SUCCESS); }
    Segment(const Segment&) = delete;

    size_t bytes() const { return piece_; }
    CUdeviceptr piece(size_t number) const { return begin_ + number * piece_; }

  private:
    const size_t piece_;
    CUdeviceptr begin_ = 0;
};

TEST_F(MemoryKind, MappedPieceByPiece) {
    const Segment segment;
    EXPECT_FALSE(is_cuda_memory(at(segment.piece(0)))) << "reserved, not mapped";
    EXPECT_TRUE(is_cuda_memory(at(segment.piece(1))));
    EXPECT_TRUE(is_cuda_memory(at(segment.piece(3) - 1)));
    EXPECT_FALSE(is_cuda_memory(at(segment.piece(3))));
    CudaScanner scanner;
    GpuTensor tensor(int64_t(2 * segment.bytes() / 4), segment.piece(1));  // a byte more on either side is a fault
    tensor.fill(stream, kOne);
    tensor.set(stream, int64_t(segment.bytes() / 4), kNan);
    scan(scanner, tensor, 1, stream);
    const std::vector<Found> found = finish(scanner);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].health.first_bad, int64_t(segment.bytes() / 4));
    EXPECT_EQ(found[0].health.nan, 1);
    EXPECT_EQ(cuMemUnmap(segment.piece(1), segment.bytes()), CUDA_SUCCESS);
    EXPECT_FALSE(is_cuda_memory(at(segment.piece(1))));
    EXPECT_TRUE(is_cuda_memory(at(segment.piece(2))));
    EXPECT_EQ(cuMemUnmap(segment.piece(2), segment.bytes()), CUDA_SUCCESS);
}

}  // namespace
}  // namespace numsan::gpu
