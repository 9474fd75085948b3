#include "interpose/libraries/cufft/cufft_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "interpose/libraries/cufft/cufft_abi.h"
#include "interpose/libraries/data_type.h"

namespace numsan::cufft {
namespace {

void* const kFrom = reinterpret_cast<void*>(0x1000);
void* const kTo = reinterpret_cast<void*>(0x2000);

Plan basic(int type, std::initializer_list<int> n, int batch = 1) {
    return plan_of_many<int>(static_cast<int>(n.size()), n.begin(), nullptr, 0, 0, nullptr, 0, 0, types_of(type),
                             batch);
}

LibraryCall described(const Plan& plan, void* to = kTo) {
    LibraryCall call{};
    describe(call, plan, kFrom, to);
    return call;
}

/// "r float32 [2,4]/[6,1]" for each buffer.
std::string shown(const LibraryCall& call) {
    std::string text;
    const auto list = [](const int64_t* numbers, int32_t count) {
        std::string all;
        for (int32_t d = 0; d < count; ++d) all += (d == 0 ? "" : ",") + std::to_string(numbers[d]);
        return "[" + all + "]";
    };
    for (int i = 0; i < call.count; ++i) {
        const LibraryCall::Buffer& buffer = call.buffers[i];
        text += (i == 0 ? "" : "; ") + std::string(buffer.read ? "r" : "") + (buffer.written ? "w " : " ") +
                info(buffer.dtype).name + " " + list(buffer.sizes, buffer.ndim) + "/" +
                list(buffer.strides, buffer.ndim);
    }
    return text;
}

TEST(CufftPlan, ComplexNumbersAreAsManyOnBothSides) {
    EXPECT_EQ(shown(described(basic(kComplexToComplex, {8}))), "r complex64 [8]/[1]; w complex64 [8]/[1]");
    EXPECT_EQ(shown(described(basic(kComplexToComplex, {8}), kFrom)), "rw complex64 [8]/[1]") << "in place";
    EXPECT_EQ(shown(described(basic(kDoubleComplexToDoubleComplex, {2, 3, 4}))),
              "r complex128 [2,3,4]/[12,4,1]; w complex128 [2,3,4]/[12,4,1]");
    EXPECT_EQ(shown(described(basic(kComplexToComplex, {8}, 3), kFrom)), "rw complex64 [3,8]/[8,1]");
}

TEST(CufftPlan, OfRealNumbersTheSpectrumHasALittleMoreThanHalf) {
    EXPECT_EQ(shown(described(basic(kRealToComplex, {8}, 3))), "r float32 [3,8]/[8,1]; w complex64 [3,5]/[5,1]");
    EXPECT_EQ(shown(described(basic(kRealToComplex, {7}))), "r float32 [7]/[1]; w complex64 [4]/[1]");
    EXPECT_EQ(shown(described(basic(kComplexToReal, {4, 6}))), "r complex64 [4,4]/[4,1]; w float32 [4,6]/[6,1]");
    EXPECT_EQ(shown(described(basic(kDoubleToDoubleComplex, {2, 4, 6}))),
              "r float64 [2,4,6]/[24,6,1]; w complex128 [2,4,4]/[16,4,1]");
    EXPECT_EQ(shown(described(basic(kDoubleComplexToDouble, {6}))), "r complex128 [4]/[1]; w float64 [6]/[1]");
}

TEST(CufftPlan, InPlaceRealNumbersHaveRoomForTheSpectrum) {
    EXPECT_EQ(shown(described(basic(kRealToComplex, {8}, 3), kFrom)),
              "r float32 [3,8]/[10,1]; w complex64 [3,5]/[5,1]");
    EXPECT_EQ(shown(described(basic(kRealToComplex, {4, 6}), kFrom)), "r float32 [4,6]/[8,1]; w complex64 [4,4]/[4,1]");
    EXPECT_EQ(shown(described(basic(kComplexToReal, {2, 4, 5}), kFrom)),
              "r complex64 [2,4,3]/[12,3,1]; w float32 [2,4,5]/[24,6,1]");
}

TEST(CufftPlan, LayoutsThatAreGiven) {
    const int n[] = {4, 6}, in[] = {5, 10}, out[] = {4, 7};
    const Plan plan = plan_of_many<int>(2, n, in, 2, 200, out, 3, 100, types_of(kRealToComplex), 5);
    EXPECT_EQ(shown(described(plan)), "r float32 [5,4,6]/[200,20,2]; w complex64 [5,4,4]/[100,21,3]");
    EXPECT_EQ(shown(described(plan, kFrom)), "r float32 [5,4,6]/[200,20,2]; w complex64 [5,4,4]/[100,21,3]");
    const long long wide[] = {8}, embed[] = {8};
    const Plan by_column = plan_of_many<long long>(1, wide, embed, 3, 1, embed, 3, 1, types_of(kComplexToComplex), 3);
    EXPECT_EQ(shown(described(by_column)), "r complex64 [3,8]/[1,3]; w complex64 [3,8]/[1,3]");
}

TEST(CufftPlan, WithoutALayoutStridesAreNotLookedAt) {
    const int n[] = {8};
    EXPECT_EQ(shown(described(plan_of_many<int>(1, n, nullptr, 7, 77, nullptr, 7, 77, types_of(kComplexToComplex), 2),
                              kFrom)),
              "rw complex64 [2,8]/[8,1]");
}

TEST(CufftPlan, WhatIsNotUnderstoodIsSaid) {
    const int n[] = {8, 8, 8, 8};
    EXPECT_NE(described(plan_of_many<int>(1, n, n, 1, 8, nullptr, 1, 8, types_of(kComplexToComplex), 1)).unseen,
              nullptr);
    EXPECT_NE(described(plan_of_many<int>(4, n, nullptr, 1, 8, nullptr, 1, 8, types_of(kComplexToComplex), 1)).unseen,
              nullptr);
    EXPECT_NE(described(basic(0x33, {8})).unseen, nullptr);
    Plan called = basic(kComplexToComplex, {8});
    called.has_callbacks = true;
    EXPECT_NE(described(called).unseen, nullptr);
    EXPECT_EQ(described(called).count, 0);
}

TEST(CufftPlan, BeyondWhatCanBeCountedHasNoExtent) {
    const long long n[] = {1LL << 40, 1LL << 40, 2};
    const LibraryCall call =
        described(plan_of_many<long long>(3, n, nullptr, 0, 0, nullptr, 0, 0, types_of(kComplexToComplex), 1LL << 40));
    ASSERT_EQ(call.count, 2);
    EXPECT_EQ(call.buffers[0].extent(), std::nullopt);
}

TEST(CufftPlan, WhatIsScratchIsMarked) {
    Plan plan = basic(kComplexToComplex, {8});
    plan.work_area = reinterpret_cast<void*>(0x5000);
    plan.stream = kTo;
    const LibraryCall call = described(plan);
    ASSERT_EQ(call.other_count, 1);
    EXPECT_EQ(call.others[0], 0x5000u);
    EXPECT_EQ(call.queue.stream, kTo);
    const LibraryCall to_real = described(basic(kComplexToReal, {8}));
    ASSERT_EQ(to_real.other_count, 1) << "its input is overwritten";
    EXPECT_EQ(to_real.others[0], 0x1000u);
    EXPECT_EQ(described(basic(kComplexToReal, {8}), kFrom).other_count, 0);
}

TEST(CufftPlan, TypesOfBothSidesAreEnough) {
    long long n[] = {8};
    const auto made = [&](int in, int out) {
        return shown(described(plan_of_many<long long>(1, n, nullptr, 1, 8, nullptr, 1, 8, types_of(in, out), 2)));
    };
    EXPECT_EQ(made(kReal32, kComplex32), "r float32 [2,8]/[8,1]; w complex64 [2,5]/[5,1]");
    EXPECT_EQ(made(kComplex64, kReal64), "r complex128 [2,5]/[5,1]; w float64 [2,8]/[8,1]");
    EXPECT_EQ(made(kComplex16, kComplex16), "r complex32 [2,8]/[8,1]; w complex32 [2,8]/[8,1]");
    EXPECT_FALSE(types_of(kInteger8, kComplex32)) << "numbers that cuFFT does not transform";
}

}  // namespace
}  // namespace numsan::cufft
