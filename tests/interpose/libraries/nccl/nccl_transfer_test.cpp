#include "interpose/libraries/nccl/nccl_transfer.h"

#include <gtest/gtest.h>

#include <string>

#include "interpose/libraries/nccl/nccl_abi.h"

namespace numsan::nccl {
namespace {

auto* const kSent = reinterpret_cast<float*>(0x1000);
auto* const kReceived = reinterpret_cast<float*>(0x2000);
constexpr int kNoPeer = -1, kNoReduction = -1;

LibraryCall described(const Transfer& transfer, Member member = {0, 4, 0}) {
    LibraryCall call{};
    describe(call, transfer, member);
    return call;
}

Transfer transfer(Function function, int peer = kNoPeer, int reduction = kNoReduction) {
    return {function, kSent, kReceived, 10, kFloat32, peer, reduction, nullptr};
}

/// "read 10 1000, written 40 2000" and what becomes of them.
std::string shown(const LibraryCall& call) {
    std::string text;
    for (int i = 0; i < call.count; ++i) {
        const LibraryCall::Buffer& buffer = call.buffers[i];
        text += (text.empty() ? "" : ", ") + std::string(buffer.read ? "r" : "") + (buffer.written ? "w" : "") + " " +
                std::to_string(buffer.sizes[0]) + (buffer.address == 0x1000 ? " here" : " there");
        EXPECT_EQ(buffer.ndim, 1);
        EXPECT_EQ(buffer.strides[0], 1);
    }
    return text + (call.sends ? ", sends" : "") + (call.receives ? ", receives" : "");
}

TEST(NcclTransfer, WhatEachRankReadsAndWrites) {
    EXPECT_EQ(shown(described(transfer(kAllReduce, kNoPeer, kSum))), "r 10 here, w 10 there, sends");
    EXPECT_EQ(shown(described(transfer(kReduceScatter, kNoPeer, kSum))), "r 40 here, w 10 there, sends");
    EXPECT_EQ(shown(described(transfer(kAllGather))), "r 10 here, w 40 there, sends, receives");
    EXPECT_EQ(shown(described(transfer(kAlltoAll))), "r 40 here, w 40 there, sends, receives");
    EXPECT_EQ(shown(described(transfer(kSend, 1))), "r 10 here, sends");
    EXPECT_EQ(shown(described(transfer(kRecv, 1))), "w 10 there, receives");
    EXPECT_EQ(shown(described(transfer(kSend, 0))), "r 10 here") << "to itself";
}

TEST(NcclTransfer, TheRootHasAnotherPartThanTheOthers) {
    EXPECT_EQ(shown(described(transfer(kReduce, 0, kSum))), "r 10 here, w 10 there");
    EXPECT_EQ(shown(described(transfer(kReduce, 2, kSum))), "r 10 here, sends");
    EXPECT_EQ(shown(described(transfer(kBroadcast, 0))), "r 10 here, w 10 there, sends");
    EXPECT_EQ(shown(described(transfer(kBroadcast, 2))), "w 10 there, receives");
    EXPECT_EQ(shown(described(transfer(kBcast, 0))), "r 10 here, sends");
    EXPECT_EQ(shown(described(transfer(kBcast, 2))), "w 10 there, receives");
    EXPECT_EQ(shown(described(transfer(kGather, 0))), "r 10 here, w 40 there, receives");
    EXPECT_EQ(shown(described(transfer(kGather, 2))), "r 10 here, sends");
    EXPECT_EQ(shown(described(transfer(kScatter, 0))), "r 40 here, w 10 there, sends");
    EXPECT_EQ(shown(described(transfer(kScatter, 2))), "w 10 there, receives");
}

TEST(NcclTransfer, InPlaceIsOneBuffer) {
    Transfer sum = transfer(kAllReduce, kNoPeer, kSum);
    sum.receive = kSent;
    EXPECT_EQ(shown(described(sum)), "rw 10 here, sends");
    Transfer gather = transfer(kAllGather);
    gather.receive = kSent;
    EXPECT_EQ(shown(described(gather)), "r 10 here, w 40 here, sends, receives") << "the rank's part is the first";
}

TEST(NcclTransfer, OneRankCopies) {
    for (const int function : {int(kAllReduce), int(kReduceScatter)})
        EXPECT_EQ(shown(described(transfer(Function(function), kNoPeer, kSum), {0, 1, 0})), "r 10 here, w 10 there");
    EXPECT_EQ(shown(described(transfer(kAllGather), {0, 1, 0})), "r 10 here, w 10 there");
}

TEST(NcclTransfer, OfOtherReductionsThanSumsTheResultIsNobodys) {
    EXPECT_FALSE(described(transfer(kAllReduce, kNoPeer, kSum)).receives);
    EXPECT_TRUE(described(transfer(kAllReduce, kNoPeer, 2)).receives) << "a maximum";
    EXPECT_TRUE(described(transfer(kAllReduce, kNoPeer, kAverage)).receives);
    EXPECT_FALSE(described(transfer(kAllReduce, kNoPeer, kAverage), {0, 1, 0}).receives);
    EXPECT_TRUE(described(transfer(kAllReduce, kNoPeer, 5), {0, 1, 0}).receives) << "with a factor of the program's";
}

TEST(NcclTransfer, TypesAndCounts) {
    EXPECT_EQ(elements_of(kFloat16).dtype, DType::Float16);
    EXPECT_EQ(elements_of(kBFloat16).dtype, DType::BFloat16);
    EXPECT_EQ(elements_of(kFloat8E4M3).dtype, DType::Float8E4M3Fn);
    EXPECT_EQ(elements_of(kFloat8E5M2).dtype, DType::Float8E5M2);
    EXPECT_TRUE(elements_of(2).integers);
    EXPECT_FALSE(elements_of(12).integers) << "a type that came later";
    Transfer integers = transfer(kAllReduce, kNoPeer, kSum);
    integers.type = 4;
    const LibraryCall of_integers = described(integers);
    EXPECT_EQ(of_integers.count, 0);
    ASSERT_EQ(of_integers.other_count, 1);
    EXPECT_EQ(of_integers.others[0], 0x2000u);
    EXPECT_TRUE(of_integers.explained && of_integers.complete);
    Transfer nothing = transfer(kAllGather);
    nothing.count = 0;
    EXPECT_EQ(described(nothing).count, 0);
    Transfer huge = transfer(kAllGather);
    huge.count = ~size_t(0) / 2;
    EXPECT_EQ(described(huge).buffers[1].extent(), std::nullopt);
}

TEST(NcclTransfer, GoesToTheStreamOfItsDevice) {
    Transfer one = transfer(kAllGather);
    one.stream = kSent;
    const LibraryCall call = described(one, {1, 4, 3});
    EXPECT_EQ(call.queue.stream, kSent);
    EXPECT_EQ(call.queue.device, 3);
    EXPECT_TRUE(call.queue.known);
    EXPECT_STREQ(call.name, "ncclAllGather");
}

}  // namespace
}  // namespace numsan::nccl
