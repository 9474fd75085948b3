#include "interpose/libraries/cublas/cublas_lt.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

namespace numsan::cublas {
namespace {

/// A descriptor: attributes by their numbers.
struct Described {
    template <class T>
    Described& with(int attribute, T value) {
        const char* const begin = reinterpret_cast<const char*>(&value);
        values[attribute].assign(begin, begin + sizeof value);
        return *this;
    }
    std::map<int, std::vector<char>> values;
};

int get(void* of, int attribute, void* value, size_t bytes, size_t* written) {
    const auto& values = static_cast<Described*>(of)->values;
    const auto found = values.find(attribute);
    if (found == values.end() || found->second.size() != bytes) return 7;  // CUBLAS_STATUS_INVALID_VALUE
    std::memcpy(value, found->second.data(), bytes);
    *written = bytes;
    return kSuccess;
}

Described layout(uint32_t type, uint64_t rows, uint64_t columns, int64_t leading) {
    return Described{}
        .with(kLayoutType, type)
        .with(kLayoutRows, rows)
        .with(kLayoutColumns, columns)
        .with(kLayoutLeading, leading);
}

void* at(uintptr_t address) { return reinterpret_cast<void*>(address); }

/// D = A B + beta C, of 8 x 16 by 16 x 4, D in the place of C.
struct Program {
    LibraryCall describe() {
        LibraryCall call{};
        cublas::describe(call,
                         {&matmul, &one, at(0xa000), &a, at(0xb000), &b, &beta, at(0xd000), &d, at(0xd000), &d,
                          at(0x5000), at(0x77)},
                         get, get);
        return call;
    }
    Described matmul, a = layout(kReal32, 8, 16, 8), b = layout(kReal32, 16, 4, 16), d = layout(kReal32, 8, 4, 8);
    float one = 1, beta = 0;
};

const LibraryCall::Buffer* buffer_at(const LibraryCall& call, uint64_t address) {
    for (int i = 0; i < call.count; ++i) {
        if (call.buffers[i].address == address) return &call.buffers[i];
    }
    return nullptr;
}
bool marks(const LibraryCall& call, uint64_t address) {
    for (int i = 0; i < call.other_count; ++i) {
        if (call.others[i] == address) return true;
    }
    return false;
}

TEST(CublasLt, AProductReadsTwoMatricesAndWritesOne) {
    Program p;
    const LibraryCall call = p.describe();
    ASSERT_EQ(call.count, 3);
    EXPECT_TRUE(call.buffers[0].read && call.buffers[1].read);
    EXPECT_FALSE(call.buffers[2].read) << "beta is 0";
    EXPECT_TRUE(call.buffers[2].written);
    EXPECT_EQ(call.buffers[2].sizes[0], 8);
    EXPECT_EQ(call.buffers[2].sizes[1], 4);
    EXPECT_EQ(call.queue.stream, at(0x77));
    EXPECT_TRUE(marks(call, 0x5000)) << "the workspace";
    EXPECT_TRUE(call.complete && call.explained);
    EXPECT_EQ(call.number_count, 2);
    p.beta = 1;
    EXPECT_TRUE(p.describe().buffers[2].read);
}

TEST(CublasLt, FactorsMayLieElsewhere) {
    Program p;
    p.matmul.with(kMatmulPointerMode, int32_t(kPointersOfDevice));
    const LibraryCall call = p.describe();
    EXPECT_NE(buffer_at(call, reinterpret_cast<uint64_t>(&p.one)), nullptr);
    EXPECT_TRUE(call.explained);
    p.matmul.with(kMatmulPointerMode, int32_t(2));  // a vector of alphas in a device's memory
    EXPECT_FALSE(p.describe().explained);
}

TEST(CublasLt, ByRows) {
    Program p;
    p.d = layout(kReal32, 8, 4, 4).with(kLayoutOrder, int32_t(kByRows));
    const LibraryCall call = p.describe();
    EXPECT_EQ(call.buffers[2].sizes[0], 8);
    EXPECT_EQ(call.buffers[2].strides[0], 4);
    EXPECT_EQ(call.buffers[2].strides[1], 1);
}

TEST(CublasLt, LayoutsThatAreNotUnderstood) {
    for (const auto& [attribute, value] : std::map<int, int32_t>{{kLayoutOrder, 2}, {kLayoutBatchMode, 1}}) {
        Program p;
        p.a.with(attribute, value);
        EXPECT_FALSE(p.describe().explained) << attribute;
        EXPECT_TRUE(p.describe().complete) << attribute;
        Program q;
        q.d.with(attribute, value);
        EXPECT_FALSE(q.describe().complete) << attribute;
    }
    Program planes;
    planes.a.with(kLayoutPlaneOffset, int64_t(1024));
    EXPECT_FALSE(planes.describe().explained);
}

TEST(CublasLt, ABiasIsReadAndItsGradientIsWritten) {
    Program p;
    p.matmul.with(kMatmulEpilogue, uint32_t(kEpilogueBias)).with(kMatmulBias, at(0x6000));
    const LibraryCall read = p.describe();
    ASSERT_NE(buffer_at(read, 0x6000), nullptr);
    EXPECT_TRUE(buffer_at(read, 0x6000)->read);
    EXPECT_EQ(buffer_at(read, 0x6000)->sizes[0], 8);
    p.matmul.with(kMatmulEpilogue, uint32_t(kEpilogueBiasGradientOfB));
    const LibraryCall written = p.describe();
    EXPECT_TRUE(buffer_at(written, 0x6000)->written);
    EXPECT_EQ(buffer_at(written, 0x6000)->sizes[0], 4) << "one for each column";
    p.d.with(kLayoutBatch, int32_t(3)).with(kLayoutBatchOffset, int64_t(64));
    p.matmul.with(kMatmulBiasStride, int64_t(100));
    EXPECT_EQ(buffer_at(p.describe(), 0x6000)->extent(), (2 * 100 + 4) * 4) << "and for each of the batch";
}

TEST(CublasLt, WhatActivationsKeep) {
    Program p;
    p.matmul.with(kMatmulEpilogue, uint32_t(kEpilogueGelu | kEpilogueAux)).with(kMatmulAux, at(0x6000));
    EXPECT_TRUE(buffer_at(p.describe(), 0x6000)->written);
    p.matmul.with(kMatmulEpilogue, uint32_t(kEpilogueGeluBackward | kEpilogueAux));
    EXPECT_TRUE(buffer_at(p.describe(), 0x6000)->read);
    p.matmul.with(kMatmulEpilogue, uint32_t(2 | kEpilogueAux));  // of ReLU, a mask of bits
    const LibraryCall mask = p.describe();
    EXPECT_EQ(buffer_at(mask, 0x6000), nullptr);
    EXPECT_TRUE(marks(mask, 0x6000));
}

TEST(CublasLt, FactorsOfEightBits) {
    Program p;
    p.a = layout(kRealE4M3, 8, 16, 8);
    p.matmul.with(kMatmulScaleOfA, at(0x6000)).with(kMatmulLargestOfD, at(0x7000));
    const LibraryCall one = p.describe();
    ASSERT_NE(buffer_at(one, 0x6000), nullptr);
    EXPECT_EQ(buffer_at(one, 0x6000)->dtype, DType::Float32);
    EXPECT_TRUE(marks(one, 0x7000));
    EXPECT_TRUE(one.explained);
    p.matmul.with(kMatmulModeOfA, int32_t(1));  // one for each block, in a type of 8 bits
    EXPECT_FALSE(p.describe().explained);
    Program biased;
    biased.a = layout(kRealE4M3, 8, 16, 8);
    biased.matmul.with(kMatmulEpilogue, uint32_t(kEpilogueBias)).with(kMatmulBias, at(0x6000));
    EXPECT_FALSE(biased.describe().explained) << "the type of the bias is the library's choice";
}

}  // namespace
}  // namespace numsan::cublas
