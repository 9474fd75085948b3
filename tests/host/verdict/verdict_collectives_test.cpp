// Where bad values go among the ranks of a group, and where they come from.
#include <gtest/gtest.h>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

constexpr int32_t kRanks[] = {0, 8, 16, 24};
const Communicator kGroup{"3", "mesh_dp", 1, 4, kRanks};

/// A NaN of `aten::log`, which a collective of the group takes in.
struct Sent : Stream {
    MadeUp x{-1}, y{kNan};

    Sent() {
        communicator = &kGroup;
        op("aten::log", {x.view()}, {y.returned()});
    }
    void collective(const char* name, std::vector<double> numbers = {}) {
        scalars = std::move(numbers);
        op(name, {y.view()}, {y.written()}, OpClass::Collective);
    }
};

TEST(VerdictCollectives, WhatIsSentGoesToTheOthersOfTheGroup) {
    Sent s;
    s.collective("c10d::allreduce_");
    ASSERT_EQ(s.outcome.sent.size(), 1U);
    const CollectiveFact& fact = s.outcome.sent[0].where;
    EXPECT_EQ(s.outcome.sent[0].birth, s.only().birth.id);
    EXPECT_EQ(fact.op, "c10d::allreduce_");
    EXPECT_EQ(fact.group, "3");
    EXPECT_EQ(fact.description, "mesh_dp");
    EXPECT_EQ(fact.number, 1U);
    EXPECT_EQ(fact.peer, std::nullopt);
    EXPECT_EQ(fact.ranks, "0, 16, 24");
}

TEST(VerdictCollectives, AValueThatHadEscapedBeforeIsSentToo) {
    Sent s;
    s.loss(s.y);
    ASSERT_EQ(s.outcome.escaped.size(), 1U);
    s.collective("c10d::allreduce_");
    EXPECT_EQ(s.only().into, EscapeInto::Loss);
    EXPECT_EQ(s.outcome.sent.size(), 1U);
}

TEST(VerdictCollectives, ASendGoesToOneRank) {
    Sent s;
    s.scalars = {2, 5};
    s.op("c10d::send", {s.y.view()}, {}, OpClass::Collective);
    ASSERT_EQ(s.outcome.sent.size(), 1U);
    EXPECT_EQ(s.outcome.sent[0].where.peer, 2);
    EXPECT_EQ(s.outcome.sent[0].where.tag, 5);
    EXPECT_EQ(s.outcome.sent[0].where.ranks, "16");
}

TEST(VerdictCollectives, ABroadcastIsNoEscapeButWhatItSentIsSaidOfAFinding) {
    for (const int root : {1, 2}) {
        Sent s;
        s.collective("c10d::broadcast_", {double(root), 0});
        EXPECT_TRUE(s.outcome.escaped.empty()) << "a buffer may be broadcast before it is filled";
        s.loss(s.y);
        ASSERT_EQ(s.outcome.escaped.size(), 1U);
        EXPECT_EQ(s.outcome.sent.size(), root == 1 ? 1U : 0U) << "its origin sends it, the others receive";
        for (const SentBirth& sent : s.outcome.sent) EXPECT_EQ(sent.where.ranks, "0, 16, 24");
    }
}

TEST(VerdictCollectives, ABroadcastAfterTheEscapeIsSaid) {
    Sent s;
    s.loss(s.y);
    s.collective("c10d::broadcast_", {1, 0});
    ASSERT_EQ(s.outcome.sent.size(), 1U);
    EXPECT_EQ(s.outcome.sent[0].where.op, "c10d::broadcast_");
}

TEST(VerdictCollectives, CollectivesBeforeTheBirthAreCounted) {
    Stream s;
    s.communicator = &kGroup;
    MadeUp clean{1}, x{-1}, y{kNan};
    for (int i = 0; i < 3; ++i) s.op("c10d::allreduce_", {clean.view()}, {clean.written()}, OpClass::Collective);
    s.op("aten::log", {x.view()}, {y.returned()});
    s.op("c10d::allreduce_", {y.view()}, {y.written()}, OpClass::Collective);
    ASSERT_EQ(s.only().collectives->size(), 1U);
    EXPECT_EQ(s.only().collectives->front().count, 3U) << "not the one that it was sent in";
    EXPECT_EQ(s.outcome.sent.at(0).where.number, 4U);
}

TEST(VerdictCollectives, PlacesThatAreSaidAreFew) {
    Sent s;
    for (size_t i = 0; i < kMostSent + 5; ++i) s.collective("c10d::allreduce_");
    EXPECT_EQ(s.outcome.sent.size(), kMostSent);
}

TEST(VerdictCollectives, WithoutAKnownGroupNothingIsSaid) {
    Sent s;
    s.communicator = nullptr;
    s.collective("c10d::allreduce_");
    EXPECT_EQ(s.only().into, EscapeInto::Collective);
    EXPECT_TRUE(s.outcome.sent.empty());
}

/// The birth of a NaN that a collective has brought, read by the next op.
Birth received(const char* op, const char* outer, std::vector<double> numbers, bool gathers = false) {
    Stream s;
    s.communicator = &kGroup;
    s.scalars = std::move(numbers);
    MadeUp own{1}, buffer{1, 1, 1, 1}, result{kNan, kNan, kNan, kNan};
    std::vector<TensorView> inputs{buffer.view()};
    if (gathers) inputs.push_back(own.view());
    s.op(op, inputs, {buffer.written()}, OpClass::Collective);
    if (outer != nullptr) {
        s.communicator = nullptr;
        s.op(outer, {own.view()}, {buffer.returned()}, OpClass::Collective);
    }
    buffer.values[2] = kNan;
    s.op("aten::mul", {buffer.view()}, {result.returned()});
    s.loss(result);
    return s.only().birth;
}

TEST(VerdictCollectives, WhatComesFromAllMayBeFromAnyOther) {
    const Birth birth = received("c10d::allreduce_", nullptr, {});
    ASSERT_TRUE(birth.received.has_value());
    EXPECT_EQ(birth.received->op, "c10d::allreduce_");
    EXPECT_EQ(birth.received->number, 1U);
    EXPECT_EQ(birth.received->peer, std::nullopt);
    EXPECT_EQ(birth.received->ranks, "0, 16, 24");
    EXPECT_EQ(birth.evidence.at(0), "received: what this process put in was finite");
}

TEST(VerdictCollectives, EachKindInABucketCameWithIt) {
    Stream s;
    s.communicator = &kGroup;
    MadeUp bucket{1, 1}, first{kInf}, second{kNan};
    s.op("c10d::allreduce_", {bucket.view()}, {bucket.written()}, OpClass::Collective);
    bucket.values = {kInf, kInf};
    s.op("aten::copy_", {first.view(), bucket.view()}, {first.written()});
    s.loss(first);
    bucket.values = {kNan, kNan};  // another part of it
    s.op("aten::copy_", {second.view(), bucket.view()}, {second.written()});
    s.loss(second);
    ASSERT_EQ(s.outcome.escaped.size(), 2U);
    for (const EscapedBirth& escaped : s.outcome.escaped) {
        EXPECT_EQ(escaped.birth.op, "c10d::allreduce_");
        EXPECT_TRUE(escaped.birth.received.has_value());
    }
}

TEST(VerdictCollectives, TheRankOfAShareIsTheSender) {
    const Birth birth = received("c10d::_allgather_base_", nullptr, {}, true);
    EXPECT_EQ(birth.received->peer, 2);
    EXPECT_EQ(birth.received->ranks, "16");
    EXPECT_EQ(birth.evidence.at(0), "received from rank 16: what this process put in was finite");
}

TEST(VerdictCollectives, AReceiveSaysFromWhom) {
    const Birth birth = received("c10d::recv_", nullptr, {3, 7});
    EXPECT_EQ(birth.received->peer, 3);
    EXPECT_EQ(birth.received->tag, 7);
    EXPECT_EQ(birth.received->ranks, "24");
}

TEST(VerdictCollectives, WhatABackendHandsOverByACopyCameWithTheCollective) {
    for (const bool delivered : {true, false}) {
        Stream s;
        s.communicator = &kGroup;
        MadeUp input{1, 1}, output{0}, memory{kNan};
        s.op("c10d::_reduce_scatter_base_", {output.view(), input.view()}, {output.written()}, OpClass::Collective);
        if (!delivered) s.op("aten::zero_", {output.view()}, {output.written()}, OpClass::Overwriting);
        output.values = {kNan};
        s.op("aten::copy_", {output.view(), memory.view()}, {output.written()}, OpClass::Overwriting);
        s.loss(output);
        EXPECT_EQ(s.only().birth.received.has_value(), delivered) << "the program may write there, too, later";
        EXPECT_EQ(s.only().birth.op, delivered ? "c10d::_reduce_scatter_base_" : "external");
    }
}

TEST(VerdictCollectives, WhatTheProgramCopiesThereIsNotReceived) {
    const auto copied = [](const char* op, int64_t steps) {
        Stream s;
        s.communicator = &kGroup;
        MadeUp buffer{0}, batch{kNan};
        s.op(op, {buffer.view()}, {buffer.written()}, OpClass::Collective);
        s.context.step += steps;
        buffer.values = {kNan};
        s.op("aten::copy_", {buffer.view(), batch.view()}, {buffer.written()}, OpClass::Overwriting);
        s.loss(buffer);
        return s.only().birth.op;
    };
    EXPECT_EQ(copied("c10d::broadcast_", 0), "external");
    EXPECT_EQ(copied("c10d::_reduce_scatter_base_", 1), "external") << "in another step";
}

TEST(VerdictCollectives, AFunctionalCollectiveHasTheGroupOfTheOneThatItCalled) {
    const Birth birth = received("c10d::allreduce_", "_c10d_functional::all_reduce", {});
    ASSERT_TRUE(birth.received.has_value());
    EXPECT_EQ(birth.received->op, "_c10d_functional::all_reduce");
    EXPECT_EQ(birth.received->group, "3");
    EXPECT_EQ(birth.received->number, 1U);
}

}  // namespace
}  // namespace numsan
