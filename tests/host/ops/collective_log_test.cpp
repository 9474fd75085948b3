#include "host/ops/collective_log.h"

#include <gtest/gtest.h>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

const Communicator kWorld{"0", "default_pg", 1, 4, nullptr};
const Communicator kRow{"mesh_tp", "", 0, 2, nullptr};

uint64_t begin(CollectiveLog& log, const char* op, const Communicator* group, int64_t seq,
               std::vector<double> scalars = {}) {
    const MadeUpOp call(op, {}, {}, OpClass::Collective, std::move(scalars));
    OpEvent event = call.event();
    event.communicator = group;
    return log.begin(event, OpSeq{seq});
}

std::map<std::string, uint64_t> counts(const std::vector<CollectiveLog::Begun>& begun) {
    std::map<std::string, uint64_t> out;
    for (const auto& one : begun) out[one.group->name] = one.count;
    return out;
}

using Counts = std::map<std::string, uint64_t>;

TEST(CollectiveLog, EachGroupCountsItsOwn) {
    CollectiveLog log;
    EXPECT_EQ(begin(log, "c10d::allreduce_", &kWorld, 5), 1U);
    EXPECT_EQ(begin(log, "c10d::barrier", &kWorld, 6), 2U);
    EXPECT_EQ(begin(log, "c10d::allreduce_", &kRow, 7), 1U);
    EXPECT_EQ(begin(log, "c10d::broadcast_", &kWorld, 9, {0, 0}), 3U);
    EXPECT_EQ(counts(log.all()), (Counts{{"0", 3}, {"mesh_tp", 1}}));
}

TEST(CollectiveLog, WhatTwoRanksSendEachOtherIsCountedByItself) {
    CollectiveLog log;
    EXPECT_EQ(begin(log, "c10d::send", &kWorld, 1, {2, 0}), 1U);
    EXPECT_EQ(begin(log, "c10d::send", &kWorld, 2, {3, 0}), 1U);
    EXPECT_EQ(begin(log, "c10d::send", &kWorld, 3, {2, 0}), 2U);
    EXPECT_EQ(begin(log, "c10d::send", &kWorld, 4, {2, 7}), 1U) << "another tag";
    EXPECT_EQ(begin(log, "c10d::recv_", &kWorld, 5, {2, 0}), 1U) << "the other direction";
    EXPECT_EQ(begin(log, "c10d::recv_any_source_", &kWorld, 6, {0}), 0U) << "from whom is not known";
    EXPECT_EQ(counts(log.all()), (Counts{{"0", 0}}));
}

TEST(CollectiveLog, WaysBetweenTwoRanksAreBounded) {
    CollectiveLog log;
    for (size_t tag = 0; tag < CollectiveLog::kPairs; ++tag)
        EXPECT_EQ(begin(log, "c10d::send", &kWorld, 1, {2, double(tag)}), 1U);
    EXPECT_EQ(begin(log, "c10d::send", &kWorld, 1, {2, 1e6}), 0U);
    EXPECT_EQ(begin(log, "c10d::send", &kWorld, 1, {2, 5}), 2U) << "one that is known goes on";
}

TEST(CollectiveLog, CountsOfThePast) {
    CollectiveLog log;
    begin(log, "c10d::allreduce_", &kWorld, 5);
    begin(log, "c10d::allreduce_", &kRow, 7);
    begin(log, "c10d::allreduce_", &kWorld, 9);
    EXPECT_EQ(counts(log.before(OpSeq{5}).value()), (Counts{{"0", 0}, {"mesh_tp", 0}}));
    EXPECT_EQ(counts(log.before(OpSeq{8}).value()), (Counts{{"0", 1}, {"mesh_tp", 1}}));
    EXPECT_EQ(counts(log.before(OpSeq::End).value()), (Counts{{"0", 2}, {"mesh_tp", 1}}));
}

TEST(CollectiveLog, WhatIsTooLongAgoIsNotSaid) {
    CollectiveLog log;
    const auto kept = static_cast<int64_t>(CollectiveLog::kKept);
    for (int64_t seq = 0; seq <= kept; ++seq) begin(log, "c10d::allreduce_", &kWorld, seq);
    EXPECT_FALSE(log.before(OpSeq{0}).has_value());
    EXPECT_EQ(counts(log.before(OpSeq{1}).value()), (Counts{{"0", 1}}));
}

TEST(CollectiveLog, AGroupThatIsMadeAnewGoesOn) {
    CollectiveLog log;
    const Communicator again{"0", "default_pg", 0, 2, nullptr};
    begin(log, "c10d::allreduce_", &kWorld, 1);
    EXPECT_EQ(begin(log, "c10d::allreduce_", &again, 2), 2U);
    ASSERT_EQ(log.all().size(), 1U);
    EXPECT_EQ(log.all()[0].group, &again);
}

TEST(CollectiveLog, AnOperationOfNoKnownGroupHasNoNumber) {
    CollectiveLog log;
    EXPECT_EQ(begin(log, "_c10d_functional::all_reduce", nullptr, 1), 0U);
    EXPECT_TRUE(log.all().empty());
}

}  // namespace
}  // namespace numsan
