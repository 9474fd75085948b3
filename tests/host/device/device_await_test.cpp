// With `dump` an op on a device is waited for, and its arguments are kept before what it gave birth to is published.
#include <gtest/gtest.h>

#include <climits>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/host/device/on_device.h"
#include "tests/host/dump/made_up_hold.h"
#include "tests/support/builders.h"

namespace numsan {
namespace {

struct Dumping {
    testing::ScratchFolder scratch;
    MadeUpHold hold;
    AdapterApi& adapter = *new AdapterApi{};  // lives as long as the session, which is never destroyed
    OnDevice d{("dump=" + scratch.file("dumps") + ":dump_findings=9").c_str()};

    Dumping() {
        adapter.hook = "fallback";
        adapter.hold = hold.api();
        d.session.use(adapter);
        hold.next("aten::log", 8);
    }
};

TEST(DeviceAwait, TheOpIsJudgedAndItsCallKeptWhenItReturns) {
    Dumping run;
    MadeUp x{-1, 2}, y{kNan, 1};
    run.d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 3);
    EXPECT_EQ(run.hold.held(), 1);
    run.d.loss(y);
    const json report = run.d.finish();
    ASSERT_EQ(report["findings"].size(), 1u);
    EXPECT_TRUE(std::filesystem::exists(report["findings"][0]["dump"].get<std::string>())) << report.dump(1);
    EXPECT_EQ(report["run"]["tiers"]["cuda"], "full");
}

TEST(DeviceAwait, AHealthyOpIsKeptByNobody) {
    Dumping run;
    MadeUp x{1, 2}, y{0, 1};
    run.d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 3);
    EXPECT_EQ(run.hold.held(), 0);
    run.d.finish();
}

TEST(DeviceAwait, AnOpWaitsForTheDevice) {
    Dumping run;
    run.d.scanner.held = true;
    MadeUp x{-1, 2}, y{kNan, 1};
    std::atomic<bool> returned{false};
    std::thread program([&] {
        run.d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 3);
        returned = true;
    });
    while (run.d.scanner.asked < 3) std::this_thread::yield();
    EXPECT_FALSE(returned);
    run.d.scanner.held = false;
    program.join();
    EXPECT_EQ(run.hold.held(), 1);
    run.d.finish();
}

TEST(DeviceAwait, ADeviceThatDoesNotAnswerIsNotWaitedForUntilItHasCaughtUp) {
    Dumping run;
    run.d.scanner.held = true;
    MadeUp x{-1, 2}, y{kNan, 1}, z{kNan, 1}, w{kNan, 1};
    run.d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 3);  // two seconds
    const int64_t began = Governor::now();
    run.d.op(kLog, {on_device(x.view())}, {on_device(z.returned())}, 4);
    EXPECT_LT(Governor::now() - began, 1'000'000'000);
    EXPECT_EQ(run.hold.held(), 0);
    run.d.scanner.held = false;
    run.d.read(z);
    run.d.op(kLog, {on_device(x.view())}, {on_device(w.returned())}, 5);
    EXPECT_EQ(run.hold.held(), 1);
    run.d.finish();
}

TEST(DeviceAwait, WhatIsCapturedIsNotWaitedFor) {
    Dumping run;
    run.d.scanner.held = run.d.scanner.captures = true;
    MadeUp x{-1, 2}, y{kNan, 1};
    const int64_t began = Governor::now();
    run.d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 3);
    EXPECT_LT(Governor::now() - began, 1'000'000'000);
    EXPECT_EQ(run.hold.held(), 0);
    run.d.scanner.held = false;
    run.d.finish();
}

/// What each thread was asked to keep: calls of HoldApi::keep and forget, which have no object.
std::atomic<int> kept_by_all{0};
thread_local int kept_by_me = 0;

TEST(DeviceAwait, ThreadsKeepTheirOwnWhoeverJudgesThem) {
    Dumping run;
    run.adapter.hold.keep = []() -> HeldCall* {
        ++kept_by_all;
        ++kept_by_me;
        return nullptr;
    };
    run.d.session.use(run.adapter);
    const auto work = [&](bool bad) {
        for (int i = 1; i <= 50; ++i) {
            MadeUp x{bad ? -1.0f : 1.0f, 2}, y{bad ? kNan : 0, 1};
            run.d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 3);
            EXPECT_EQ(kept_by_me, bad ? i : 0);
        }
    };
    std::thread first(work, true), second(work, false), third(work, true);
    first.join();
    second.join();
    third.join();
    EXPECT_EQ(kept_by_all, 100);
    run.d.finish();
}

std::atomic<bool> keeps{false};
std::atomic<int> flushes_of_the_end{0};
std::atomic<int>* flushes = nullptr;

TEST(DeviceAwait, TheEndWaitsForAThreadThatKeepsItsCall) {
    Dumping run;
    MadeUp x{-1, 2}, y{kNan, 1}, z{kNan, 1};
    run.d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 2);
    flushes = &run.d.scanner.flushes;
    flushes_of_the_end = INT_MAX;
    run.adapter.hold.keep = []() -> HeldCall* {
        keeps = true;
        while (*flushes < flushes_of_the_end) std::this_thread::yield();
        return nullptr;
    };
    run.d.session.use(run.adapter);
    std::thread program([&] { run.d.op(kLog, {on_device(x.view())}, {on_device(z.returned())}, 3); });
    while (!keeps) std::this_thread::yield();
    run.d.loss(y);  // is not published while the other thread keeps its call
    EXPECT_FALSE(run.d.played.read().is_object());
    flushes_of_the_end = *flushes + 1;
    const json report = run.d.finish();
    program.join();
    ASSERT_TRUE(report.is_object());
    EXPECT_EQ(report["findings"].size(), 1u);
}

}  // namespace
}  // namespace numsan
