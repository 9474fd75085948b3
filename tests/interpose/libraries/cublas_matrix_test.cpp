#include "interpose/libraries/cublas_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "interpose/libraries/cublas_abi.h"

namespace numsan::cublas {
namespace {

const auto* const kData = reinterpret_cast<const float*>(0x1000);

TEST(CublasMatrix, IsABufferOfRowsAndColumns) {
    LibraryCall call{};
    add(call, {kData, DType::Float32, 3, 4, 8}, true, false);
    add(call, {kData, DType::Float16, 3, 1, 3, 5, 100}, false, true);
    ASSERT_EQ(call.count, 2);
    const LibraryCall::Buffer &wide = call.buffers[0], &many = call.buffers[1];
    EXPECT_EQ(wide.ndim, 2);
    EXPECT_EQ(wide.sizes[0], 3);
    EXPECT_EQ(wide.strides[0], 1) << "rows lie side by side";
    EXPECT_EQ(wide.sizes[1], 4);
    EXPECT_EQ(wide.strides[1], 8);
    EXPECT_EQ(wide.extent(), (3 * 8 + 3) * 4) << "the last column ends where its rows do";
    EXPECT_TRUE(wide.read && !wide.written);
    EXPECT_EQ(many.ndim, 2) << "a vector for each of the batch";
    EXPECT_EQ(many.sizes[0], 5);
    EXPECT_EQ(many.extent(), (4 * 100 + 3) * 2);
    EXPECT_TRUE(!many.read && many.written);
}

TEST(CublasMatrix, WithoutElementsOrWithNegativeSizesHasNoBytes) {
    LibraryCall call{};
    add(call, {kData, DType::Float32, 0, 4, 8}, true, true);
    add(call, {kData, DType::Float32, -3, 4, 8}, true, true);
    add(call, {kData, DType::Float32, 3, 4, -8}, true, true);
    for (int i = 0; i < call.count; ++i) EXPECT_EQ(call.buffers[i].extent(), 0) << i;
}

TEST(CublasMatrix, OfIntegersOrNowhereIsNoBuffer) {
    LibraryCall call{};
    add(call, {kData, dtype_of(3), 3, 4, 3}, false, true);  // CUDA_R_8I
    add(call, {nullptr, DType::Float32, 3, 4, 3}, false, true);
    EXPECT_EQ(call.count, 0);
    EXPECT_TRUE(call.complete);
}

TEST(CublasMatrix, ThatFindsNoRoomMakesTheCallIncompleteWhereItIsWritten) {
    LibraryCall call{};
    for (int i = 0; i <= LibraryCall::kMostBuffers; ++i) add(call, {kData, DType::Float32, 1, 1, 1}, true, false);
    EXPECT_EQ(call.count, LibraryCall::kMostBuffers);
    EXPECT_TRUE(call.complete);
    add(call, {kData, DType::Float32, 1, 1, 1}, false, true);
    EXPECT_FALSE(call.complete);
}

TEST(CublasFactors, AreReadWhereTheyLieOnTheHost) {
    const float one = 1, zero = 0;
    const double infinite = std::numeric_limits<double>::infinity();
    const float complex_zero[] = {0, 0}, imaginary[] = {0, 1};
    EXPECT_TRUE((Factors{&one, &zero, true, DType::Float32}.has_no_beta()));
    EXPECT_FALSE((Factors{&one, &one, true, DType::Float32}.has_no_beta()));
    EXPECT_FALSE((Factors{&one, &zero, false, DType::Float32}.has_no_beta())) << "it may be anything";
    EXPECT_FALSE((Factors{&one, nullptr, true, DType::Float32}.has_no_beta()));
    EXPECT_TRUE((Factors{imaginary, complex_zero, true, DType::Complex64}.has_no_beta()));
    EXPECT_FALSE((Factors{imaginary, imaginary, true, DType::Complex64}.has_no_beta()));
    LibraryCall call{};
    Factors{&infinite, nullptr, true, DType::Float64}.add_to(call);
    Factors{nullptr, &one, true, DType::Float32}.add_to(call);
    ASSERT_EQ(call.number_count, 2);
    EXPECT_EQ(call.numbers[0], infinite);
    EXPECT_EQ(call.numbers[1], 1);
    LibraryCall of_device{};
    Factors{&one, &one, false, DType::Float32}.add_to(of_device);
    EXPECT_EQ(of_device.number_count, 0);
}

TEST(CublasFactors, HaveTheTypeOfTheComputation) {
    EXPECT_EQ(factor_type(kCompute16, DType::Float16), DType::Float16);
    EXPECT_EQ(factor_type(68, DType::BFloat16), DType::Float32);
    EXPECT_EQ(factor_type(kCompute64, DType::Float64), DType::Float64);
    EXPECT_EQ(factor_type(68, DType::Complex64), DType::Complex64);
    EXPECT_EQ(factor_type(kCompute64Emulated, DType::Complex128), DType::Complex128);
}

}  // namespace
}  // namespace numsan::cublas
