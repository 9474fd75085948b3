// What is read of the parameters of stubs, which are functions of this program, as g++ sees those that nvcc makes.
#include "host/kernels/stub_parameters.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "host/stacks/libdw.h"

struct __half {
    unsigned short bits;
};
struct __nv_bfloat16 {
    unsigned short bits;
};

namespace {

/// Not that of CUDA.
struct double2 {
    float *to, *from;
};
struct Inner {
    float* weights;
    const __half* inputs;
};
struct Base {
    int count;
};
struct Params : Base {
    static constexpr int kMade = 1;
    Inner inner;
    double* out[2];
    float scale;
    unsigned flag : 1;
};
static_assert(Params::kMade == 1, "no part of an object");
struct Square {};
struct Particle {
    float position[3], mass;
};
struct Labelled {
    float value;
    int label;
};
struct Cell {
    int row, column;
};
union Either {
    float* numbers;
    int* integers;
};
struct Padded {
    char kind;
    double value;
};
struct Many {
    float* rows[32];
};

enum class Color : int { Red };
struct Open {
    long count;
    float* rows[];
};

using numsan::KernelParameter;
using numsan::stub_parameters;
using numsan::StubParameters;

std::optional<StubParameters> seen;

__attribute__((noinline)) void launch(const char* symbol) {
    seen = stub_parameters(symbol);
    asm volatile("" ::: "memory");
}

}  // namespace

// As nvcc makes them, in no namespace: of functions that clang describes inside one libdw finds no scopes.
__attribute__((noinline)) static void __device_stub__Z12fused_updatePfPK13__nv_bfloat166ParamsPvPjPKcPc(
    float*, const __nv_bfloat16*, Params&, void*, unsigned*, const char*, char*) {
    launch("fused_update");
    asm volatile("" ::: "memory");
}
__attribute__((noinline)) static void __device_stub__ZN2ns5applyIfNS_6SquareEEEvPT_T0_i(float*, Square&, int) {
    launch("_ZN2ns5applyIfNS_6SquareEEEvPT_T0_i");
    asm volatile("" ::: "memory");
}
__attribute__((noinline)) static void __device_stub__Z5movesP8ParticleP8LabelledP4CellPKS3_R6EitherP6Padded(
    Particle*, Labelled*, Cell*, const Cell*, Either&, Padded*) {
    launch("moves");
    asm volatile("" ::: "memory");
}
__attribute__((noinline)) static void __device_stub__Z4manyR4Many(Many&) {
    launch("many");
    asm volatile("" ::: "memory");
}

__attribute__((noinline)) static void __device_stub__Z5bytesPSt4byteP5ColorR4Open(std::byte*, Color*, Open&) {
    launch("bytes");
    asm volatile("" ::: "memory");
}
__attribute__((noinline)) static void __device_stub__Z3ownP7double2(double2*) {
    launch("own");
    asm volatile("" ::: "memory");
}

namespace {

/// "0+8 writes float32": argument, offset in it and use.
std::string shown(const StubParameters& parameters) {
    const char* const uses[] = {"value", "number", "reads", "writes", "others", "unknown"};
    std::string text = std::to_string(parameters.count) + ":";
    for (const KernelParameter& part : parameters.parts) {
        text += " " + std::to_string(part.argument) + "+" + std::to_string(part.offset) + " " + uses[int(part.use)];
        const bool typed = part.use != KernelParameter::Use::Unknown && part.use != KernelParameter::Use::Others &&
                           part.use != KernelParameter::Use::Value;
        if (typed) text += std::string(" ") + numsan::info(part.dtype).name;
    }
    return text;
}

template <class Stub, class... Arguments>
std::string launched(Stub* stub, Arguments&&... arguments) {
    seen.reset();
    stub(std::forward<Arguments>(arguments)...);
    return seen ? shown(*seen) : "none";
}

const char* const kNoLibdw = "libdw is not installed";
bool can_see() { return numsan::libdw().complete; }

TEST(StubParameters, MembersOfStructsArePartsOfTheirOwn) {
    if (!can_see()) GTEST_SKIP() << kNoLibdw;
    Params params{};
    EXPECT_EQ(launched(__device_stub__Z12fused_updatePfPK13__nv_bfloat166ParamsPvPjPKcPc, nullptr, nullptr, params,
                       nullptr, nullptr, nullptr, nullptr),
              "7: 0+0 writes float32 1+0 reads bfloat16 2+8 writes float32 2+16 reads float16 2+24 writes float64 2+32 "
              "writes float64 2+40 number float32 3+0 unknown 4+0 others 5+0 value 6+0 unknown");
}

TEST(StubParameters, AnEmptyStructLeadsNowhere) {
    if (!can_see()) GTEST_SKIP() << kNoLibdw;
    Square square;
    EXPECT_EQ(launched(__device_stub__ZN2ns5applyIfNS_6SquareEEEvPT_T0_i, nullptr, square, 0), "3: 0+0 writes float32");
}

TEST(StubParameters, WhatAPointerLeadsToIsNumbersOnlyIfAllOfItIs) {
    if (!can_see()) GTEST_SKIP() << kNoLibdw;
    Either either{};  // clang describes types of which there are objects
    Particle particle{};
    Labelled labelled{};
    Cell cell{};
    Padded padded{};
    EXPECT_EQ(launched(__device_stub__Z5movesP8ParticleP8LabelledP4CellPKS3_R6EitherP6Padded, &particle, &labelled,
                       &cell, &cell, either, &padded),
              "6: 0+0 writes float32 1+0 unknown 2+0 unknown 3+0 value 4+0 unknown 5+0 unknown");
}

TEST(StubParameters, ATypeOfTheProgramsOwnIsNotCudasOfThatName) {
    if (!can_see()) GTEST_SKIP() << kNoLibdw;
    double2 own{};
    EXPECT_EQ(launched(__device_stub__Z3ownP7double2, &own), "1: 0+0 unknown");
}

TEST(StubParameters, VeryManyPartsAreNotGoneThrough) {
    if (!can_see()) GTEST_SKIP() << kNoLibdw;
    Many many{};
    EXPECT_EQ(launched(__device_stub__Z4manyR4Many, many), "1: 0+0 unknown");
}

TEST(StubParameters, BytesMayBeOfAnything) {
    if (!can_see()) GTEST_SKIP() << kNoLibdw;
    Open open{};
    EXPECT_EQ(launched(__device_stub__Z5bytesPSt4byteP5ColorR4Open, nullptr, nullptr, open),
              "3: 0+0 unknown 1+0 others 2+8 unknown")
        << "std::byte, an enumeration of int, and an array whose length is not known";
}

TEST(StubParameters, AStubIsFoundThatIsNotOnTheStack) {
    if (!can_see()) GTEST_SKIP() << kNoLibdw;
    launch("_ZN2ns5applyIfNS_6SquareEEEvPT_T0_i");
    ASSERT_TRUE(seen);
    EXPECT_EQ(shown(*seen), "3: 0+0 writes float32");
    launch("fused_update");
    EXPECT_FALSE(seen) << "another kernel may have that name";
    launch("_ZN2ns5applyIdNS_6SquareEEEvPT_T0_i");
    EXPECT_FALSE(seen) << "an overload";
}

TEST(StubParameters, OfAKernelWithoutAStubNothingIsKnown) {
    for (const char* const name : {"fused", "_Z12fused_updatePd", "triton_poi_fused_0", "", "_Z"}) {
        launch(name);
        EXPECT_FALSE(seen) << name;
    }
    launch(nullptr);
    EXPECT_FALSE(seen);
}

}  // namespace
