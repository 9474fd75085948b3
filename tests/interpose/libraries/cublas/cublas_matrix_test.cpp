#include "interpose/libraries/cublas/cublas_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "interpose/libraries/cublas/cublas_abi.h"

namespace numsan::cublas {
namespace {

const auto* const kData = reinterpret_cast<const float*>(0x1000);

TEST(CublasMatrix, IsABufferOfRowsAndColumns) {
    LibraryCall call{};
    add(call, {kData, {DType::Float32}, 3, 4, 8}, true, false);
    add(call, {kData, {DType::Float16}, 3, 1, 3, 5, 100}, false, true);
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

TEST(CublasMatrix, ByRowsHasItsColumnsSideBySide) {
    LibraryCall call{};
    Matrix matrix{kData, {DType::Float32}, 3, 4, 8};
    matrix.by_rows = true;
    add(call, matrix, true, false);
    EXPECT_EQ(call.buffers[0].sizes[0], 3);
    EXPECT_EQ(call.buffers[0].strides[0], 8);
    EXPECT_EQ(call.buffers[0].strides[1], 1);
    EXPECT_EQ(call.buffers[0].extent(), (2 * 8 + 4) * 4);
}

TEST(CublasMatrix, WithoutElementsIsNothing) {
    LibraryCall call{};
    add(call, {kData, {DType::Float32}, 0, 4, 8}, true, true);
    add(call, {kData, {DType::Float32}, 3, -4, 8}, true, true);
    add(call, {kData, {DType::Float32}, 3, 4, 8, 0}, true, true);
    add(call, {nullptr, {}, 0, 4, 8}, true, true);
    EXPECT_EQ(call.count, 0);
    EXPECT_TRUE(call.complete && call.explained);
}

TEST(CublasMatrix, BeyondWhatCanBeCountedHasNoExtent) {
    LibraryCall call{};
    const int64_t large = int64_t(1) << 40;
    add(call, {kData, {DType::Float64}, 3, large, large}, true, false);
    add(call, {kData, {DType::Float64}, 3, 4, -8}, true, false);
    for (int i = 0; i < call.count; ++i) EXPECT_EQ(call.buffers[i].extent(), std::nullopt) << i;
}

TEST(CublasMatrix, OfIntegersIsMarkedWhereItIsWritten) {
    LibraryCall call{};
    add(call, {kData, elements_of(kInteger8), 3, 4, 3}, true, false);
    EXPECT_TRUE(call.explained) << "integers explain no bad value";
    add(call, {kData, elements_of(10), 3, 4, 3}, false, true);  // CUDA_R_32I
    EXPECT_EQ(call.count, 0);
    ASSERT_EQ(call.other_count, 1);
    EXPECT_EQ(call.others[0], 0x1000u);
    EXPECT_TRUE(call.complete);
}

TEST(CublasMatrix, ThatCannotBeReadLeavesTheResultUnexplained) {
    LibraryCall of_a_new_type{}, nowhere{};
    add(of_a_new_type, {kData, elements_of(33), 3, 4, 3}, true, false);  // CUDA_R_4F_E2M1
    EXPECT_FALSE(of_a_new_type.explained);
    add(nowhere, {nullptr, {DType::Float32}, 3, 4, 3}, true, false);
    EXPECT_FALSE(nowhere.explained);
    add(nowhere, {nullptr, {DType::Float32}, 3, 4, 3}, false, true);
    EXPECT_FALSE(nowhere.complete);
}

TEST(CublasMatrix, ThatFindsNoRoomIsSaid) {
    LibraryCall call{};
    for (int i = 0; i < LibraryCall::kMostBuffers; ++i) add(call, {kData, {DType::Float32}, 1, 1, 1}, true, false);
    EXPECT_TRUE(call.complete && call.explained);
    add(call, {kData, {DType::Float32}, 1, 1, 1}, true, false);
    EXPECT_FALSE(call.explained);
    EXPECT_TRUE(call.complete);
    add(call, {kData, {DType::Float32}, 1, 1, 1}, false, true);
    EXPECT_FALSE(call.complete);
    EXPECT_EQ(call.count, LibraryCall::kMostBuffers);
}

TEST(CublasFactors, AreReadWhereTheyLieOnTheHost) {
    const float one = 1, zero = 0, minus_zero = -0.0f;
    EXPECT_TRUE((Factors{&one, &minus_zero, Factors::Place::Host, DType::Float32}.has_no_beta()));
    const double infinite = std::numeric_limits<double>::infinity();
    const float complex_zero[] = {0, 0}, imaginary[] = {0, 1};
    EXPECT_TRUE((Factors{&one, &zero, Factors::Place::Host, DType::Float32}.has_no_beta()));
    EXPECT_FALSE((Factors{&one, &one, Factors::Place::Host, DType::Float32}.has_no_beta()));
    EXPECT_FALSE((Factors{&one, &zero, Factors::Place::Device, DType::Float32}.has_no_beta())) << "it may be anything";
    EXPECT_FALSE((Factors{&one, nullptr, Factors::Place::Host, DType::Float32}.has_no_beta()));
    EXPECT_TRUE((Factors{imaginary, complex_zero, Factors::Place::Host, DType::Complex64}.has_no_beta()));
    EXPECT_FALSE((Factors{imaginary, imaginary, Factors::Place::Host, DType::Complex64}.has_no_beta()));
    LibraryCall call{};
    Factors{&infinite, nullptr, Factors::Place::Host, DType::Float64}.add_to(call);
    Factors{nullptr, &one, Factors::Place::Host, DType::Float32}.add_to(call);
    ASSERT_EQ(call.number_count, 2);
    EXPECT_EQ(call.numbers[0], infinite);
    EXPECT_EQ(call.numbers[1], 1);
    LibraryCall of_device{};
    Factors{&one, &one, Factors::Place::Device, DType::Float32}.add_to(of_device);
    EXPECT_EQ(of_device.number_count, 0);
    EXPECT_EQ(of_device.count, 2) << "they are read there";
    EXPECT_TRUE(of_device.explained);
    LibraryCall of_vectors{};
    Factors{&one, &one, Factors::Place::Elsewhere, DType::Float32}.add_to(of_vectors);
    EXPECT_FALSE(of_vectors.explained);
}

TEST(CublasFactors, HaveTheTypeOfTheComputation) {
    EXPECT_EQ(factor_type(kCompute16, {DType::Float16}), DType::Float16);
    EXPECT_EQ(factor_type(68, {DType::BFloat16}), DType::Float32);
    EXPECT_EQ(factor_type(kCompute64, {DType::Float64}), DType::Float64);
    EXPECT_EQ(factor_type(68, {DType::Complex64}), DType::Complex64);
    EXPECT_EQ(factor_type(kCompute64Emulated, {DType::Complex128}), DType::Complex128);
}

}  // namespace
}  // namespace numsan::cublas
