#include "host/kernels/kernel_signature.h"

#include <gtest/gtest.h>

namespace numsan {
namespace {

using ParameterUse = KernelParameter::Use;

/// A letter for each parameter: v, n, r, w, o for Others, ? for Unknown.
std::string kinds(const std::optional<KernelSignature>& signature) {
    if (!signature) return "none";
    std::string text;
    for (const KernelParameter& p : signature->parameters) text += "vnrwo?"[static_cast<int>(p.use)];
    return text;
}

TEST(KernelSignature, AFunctionOfNumbersAndPointers) {
    const auto scale = kernel_signature("_Z5scalePfPKfi");
    EXPECT_EQ(kinds(scale), "wrv");
    EXPECT_EQ(scale->name, "scale");
    EXPECT_EQ(scale->parameters[0].dtype, DType::Float32);
    EXPECT_TRUE(scale->has(ParameterUse::Reads));
    EXPECT_FALSE(scale->has(ParameterUse::Unknown));
}

TEST(KernelSignature, OneThatWasMadeFromATemplate) {
    // void ns::softmax<float, (int)4>(float*, float const*, int)
    const auto softmax = kernel_signature("_ZN2ns7softmaxIfLi4EEEvPT_PKS1_i");
    EXPECT_EQ(kinds(softmax), "wrv");
    EXPECT_EQ(softmax->name, "ns::softmax<float, 4>");
}

TEST(KernelSignature, TypesOfOtherWidths) {
    // k(double*, __half*, __nv_bfloat16 const*, float4*, thrust::complex<double>*)
    const auto kernel = kernel_signature("_Z1kPdP6__halfPK13__nv_bfloat16P6float4PN6thrust7complexIdEE");
    ASSERT_EQ(kinds(kernel), "wwrww");
    const DType dtypes[] = {DType::Float64, DType::Float16, DType::BFloat16, DType::Float32, DType::Float64};
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(kernel->parameters[i].dtype, dtypes[i]) << i;
}

TEST(KernelSignature, WhatMayLeadAnywhere) {
    EXPECT_EQ(kinds(kernel_signature("_Z1kPv")), "?");                   // void*
    EXPECT_EQ(kinds(kernel_signature("_Z1kPPf")), "?");                  // float**
    EXPECT_EQ(kinds(kernel_signature("_Z1kN2ns6ParamsE")), "?");         // a struct
    EXPECT_EQ(kinds(kernel_signature("_Z1kPtPhPKh")), "??v");            // bytes that are written may be anything
    EXPECT_EQ(kinds(kernel_signature("_Z1kPA4_f")), "?");                // float (*) [4]
    EXPECT_EQ(kinds(kernel_signature("_Z1kPfPFviE")), "w?");             // void (*)(int)
    EXPECT_EQ(kinds(kernel_signature("_Z1kN2ns4PairIPfPiEEPf")), "?w");  // ns::Pair<float*, int*>, float*
    EXPECT_EQ(kinds(kernel_signature("_Z1kPiPjPKlbmfd")), "oovvvnn");
}

TEST(KernelSignature, NoneWithoutATypedName) {
    EXPECT_EQ(kinds(kernel_signature("add_kernel_0d1d2d")), "none");
    EXPECT_EQ(kinds(kernel_signature("")), "none");
    EXPECT_EQ(kinds(kernel_signature(nullptr)), "none");
    EXPECT_EQ(kinds(kernel_signature("_ZTV5shape")), "none");  // vtable for shape
    EXPECT_EQ(kinds(kernel_signature("_Z4nonev")), "");
}

}  // namespace
}  // namespace numsan
