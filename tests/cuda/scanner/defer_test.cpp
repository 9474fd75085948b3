// Small outputs wait for each other; what ends the wait, and what becomes of those that are gone by then.
#include "cuda/kernel/scan_policy.h"
#include "tests/cuda/scanner/fake_gpu.h"

namespace numsan::gpu {
namespace {

class Deferral : public ScannerTest {
  protected:
    CudaScanner scanner;
};

TEST_F(Deferral, ThresholdOfItems) {
    GpuTensor tensor(5);
    tensor.fill(stream, kNan);
    std::vector<Storage> storages(2 * kBatchOutputs);
    for (int i = 0; i < 2 * kBatchOutputs; ++i) {
        EXPECT_EQ(scanner.counters().launches, uint64_t(i / kBatchOutputs));
        EXPECT_EQ(scanner.counters().pending, uint64_t(i % kBatchOutputs));
        scan_later(scanner, tensor, uint64_t(i), stream, storages[size_t(i)]);
    }
    EXPECT_EQ(scanner.counters().launches, 2u);
    EXPECT_EQ(finish(scanner).size(), storages.size());
    for (const Storage& storage : storages) {
        EXPECT_GE(storage.pinned, 1);
        EXPECT_EQ(storage.held(), 0);
    }
}

TEST_F(Deferral, ThresholdOfBytesAndLargeOutputs) {
    GpuTensor large(kDeferBelowBytes / 4), small(kDeferBelowBytes / 4 - 1);
    Storage storages[20];
    scan_later(scanner, large, 0, stream, storages[0]);
    EXPECT_EQ(scanner.counters().launches, 1u) << "too large to wait";
    EXPECT_EQ(scanner.counters().deferred, 0u);
    EXPECT_EQ(storages[0].pinned, 0);
    const int needed = int(kDeferredBytes / (kDeferBelowBytes - 4)) + 1;
    ASSERT_LT(needed, kBatchOutputs);
    ASSERT_LT(needed, 20);
    for (int i = 1; i <= needed; ++i) {
        EXPECT_EQ(scanner.counters().launches, 1u);
        scan_later(scanner, small, uint64_t(i), stream, storages[i]);
    }
    EXPECT_EQ(scanner.counters().launches, 2u);
}

TEST_F(Deferral, AStorageThatLostItsMemoryIsNotTouched) {
    auto dead = std::make_unique<GpuTensor>(500);
    GpuTensor living(500);
    dead->fill(stream, kNan);
    living.fill(stream, kNan);
    Storage gone, here;
    scan_later(scanner, *dead, 1, stream, gone);
    scan_later(scanner, living, 2, stream, here);
    EXPECT_EQ(gone.held(), 1);
    gone.bytes = 0;
    const std::vector<Found> found = finish(scanner);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].sequence, 2u);
    EXPECT_EQ(skipped(scanner, SkipReason::Dead), 1u);
    EXPECT_EQ(scanner.counters().scanned, 1u);
    EXPECT_EQ(gone.held(), 0);
    EXPECT_EQ(here.held(), 0);
    Storage again;
    scan_later(scanner, *dead, 3, stream, again);
    again.data = nullptr;
    ASSERT_EQ(cuMemFree(dead->address()), CUDA_SUCCESS);
    EXPECT_TRUE(finish(scanner).empty());
    EXPECT_EQ(scanner.counters().launches, 1u) << "nothing to launch";
    EXPECT_EQ(again.held(), 0);
}

TEST_F(Deferral, AWriteInPlaceComesAfterTheScan) {
    GpuTensor tensor(5), other(5);
    tensor.fill(stream, kNan);
    Storage storage;
    scan_later(scanner, tensor, 1, stream, storage);
    scanner.note_write(other.view.storage);
    scanner.note_write(&storage);
    EXPECT_EQ(scanner.counters().pending, 0u);
    tensor.fill(stream, kOne);
    EXPECT_EQ(finish(scanner).size(), 1u) << "as it was before the write";
}

TEST_F(Deferral, AnotherStreamOfTheThreadEndsTheWait) {
    CUstream second;
    ASSERT_EQ(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    GpuTensor tensor(5);
    Storage one, two;
    scan_later(scanner, tensor, 1, stream, one);
    scan_later(scanner, tensor, 2, second, two);
    EXPECT_EQ(scanner.counters().launches, 1u);
    EXPECT_EQ(one.held(), 0);
    EXPECT_EQ(two.held(), 1);
    scanner.flush({context, stream});
    EXPECT_EQ(two.held(), 1) << "the other stream's";
    scanner.flush({context, second});
    EXPECT_EQ(two.held(), 0);
}

TEST_F(Deferral, PendingOnesGoWithAnImmediateOneInOrder) {
    GpuTensor tensor(5);
    tensor.fill(stream, kNan);
    Storage storage;
    scan_later(scanner, tensor, 1, stream, storage);
    scan(scanner, tensor, 2, stream);
    EXPECT_EQ(scanner.counters().launches, 1u);
    const std::vector<Found> found = finish(scanner);
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].sequence, 1u);
}

TEST_F(Deferral, WhatCannotBeScannedIsLetGoOf) {
    GpuTensor tensor(5);
    const int64_t minus[] = {-1};
    tensor.view.strides = minus;
    Storage storage;
    scan_later(scanner, tensor, 1, stream, storage);
    EXPECT_EQ(skipped(scanner, SkipReason::Unsupported), 1u);
    EXPECT_EQ(storage.held(), 0);
    EXPECT_EQ(scanner.counters().pending, 0u);
}

}  // namespace
}  // namespace numsan::gpu
