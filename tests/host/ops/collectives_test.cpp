#include "host/ops/collectives.h"

#include <gtest/gtest.h>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

CollectiveRoute route(const char* op, std::vector<double> scalars = {}) {
    return route_of(MadeUpOp(op, {}, {}, OpClass::Collective, std::move(scalars)).event());
}

TEST(Collectives, BetweenWhichRanksValuesGo) {
    EXPECT_EQ(route("c10d::allreduce_").way, CollectiveWay::AllToAll);
    EXPECT_EQ(route("c10d::broadcast_", {2, 0, -1}).way, CollectiveWay::OneToAll);
    EXPECT_EQ(route("c10d::broadcast_", {2, 0, -1}).peer, 2);
    EXPECT_EQ(route("c10d::gather_", {1, -1}).way, CollectiveWay::AllToOne);
    EXPECT_EQ(route("c10d::gather_", {1, -1}).peer, 1);
    const CollectiveRoute sent = route("c10d::send", {3, 7});
    EXPECT_EQ(sent.way, CollectiveWay::Send);
    EXPECT_EQ(sent.peer, 3);
    EXPECT_EQ(sent.tag, 7);
    EXPECT_TRUE(sent.between_two());
    EXPECT_FALSE(route("c10d::reduce_", {0}).between_two());
}

TEST(Collectives, FromAnyRankIsFromOneThatIsNotKnown) {
    const CollectiveRoute any = route("c10d::recv_any_source_", {7});
    EXPECT_EQ(any.way, CollectiveWay::Receive);
    EXPECT_EQ(any.peer, -1);
    EXPECT_EQ(any.tag, 7);
}

TEST(Collectives, WhatIsNotKnownGoesFromAllToAll) {
    EXPECT_EQ(route("library::exchange", {1}).way, CollectiveWay::AllToAll);
    EXPECT_EQ(route("library::exchange", {1}).peer, -1);
    EXPECT_EQ(route("c10d::send").peer, -1) << "without its numbers";
}

TEST(Collectives, TheOriginIsKnownByTheGroup) {
    const MadeUpOp call("c10d::broadcast_", {}, {}, OpClass::Collective, {2, 0});
    OpEvent event = call.event();
    EXPECT_FALSE(is_origin(event, route_of(event))) << "no group is known";
    const Communicator origin{"0", "", 2, 4, nullptr}, other{"0", "", 1, 4, nullptr};
    event.communicator = &origin;
    EXPECT_TRUE(is_origin(event, route_of(event)));
    event.communicator = &other;
    EXPECT_FALSE(is_origin(event, route_of(event)));
}

}  // namespace
}  // namespace numsan
