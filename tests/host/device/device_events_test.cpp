// Events of a device's tensors: judged late, in the program's order, as if the host had read them when they happened.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "tests/host/device/on_device.h"

namespace numsan {
namespace {

const OpInfo kExp{"aten::exp", "", OpClass::Other, false, 7};

TEST(DeviceEvents, AreJudgedWhenTheDeviceHasTold) {
    OnDevice d;
    MadeUp x{-1, 2}, y{kNan, 1}, z{kNan, 2};
    d.scanner.held = true;
    d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 3);
    d.op(kMul, {on_device(y.view()), on_device(x.view())}, {on_device(z.returned())});
    d.loss(z);
    EXPECT_FALSE(d.played.read().is_object()) << "nothing is known yet";
    d.scanner.held = false;
    d.read(z);
    EXPECT_EQ(d.scanner.flushes, 1);
    const json early = d.played.read();
    ASSERT_TRUE(early.is_object()) << "the program has waited for the device: what it did is judged";
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u);
    const json& finding = report["findings"][0];
    EXPECT_EQ(finding["op"], "aten::log");
    EXPECT_EQ(finding["mechanism"], "DOM");
    EXPECT_EQ(finding["inputs"][0]["min"], -1) << finding.dump(1);
    EXPECT_EQ(report["coverage"]["skipped"].value("cuda", 0), 0);
}

TEST(DeviceEvents, AreTheSameAsThoseOfTheHost) {
    json findings[2];
    for (const bool device : {false, true}) {
        OnDevice d;
        MadeUp x{90, 1}, y{kInf, 2.7f}, z{kNan, 1}, parameter{1}, gradient{kNan};
        parameter.flags = kParameter;
        const auto place = [&](const TensorView& t) { return device ? on_device(t) : t; };
        const auto op = [&](const OpInfo& info, std::vector<TensorView> in, std::vector<TensorView> out, uint64_t n) {
            if (device)
                d.op(info, in, out, n);
            else
                d.played.op(info, in, out, n);
        };
        op(kExp, {place(x.view())}, {place(y.returned())}, 1);
        op(kDiv, {place(y.view()), place(y.view())}, {place(z.returned())}, 2);
        d.session.scope_begin("Optimizer.zero_grad#SGD.zero_grad");
        d.session.scope_end("Optimizer.zero_grad#SGD.zero_grad");
        op(kMul, {place(z.view()), place(parameter.view())}, {place(gradient.returned())}, 3);
        d.reaches(place(gradient.view()), place(parameter.view()));
        d.session.scope_begin("Optimizer.step#SGD.step");
        d.session.scope_end("Optimizer.step#SGD.step");
        findings[device] = d.finish()["findings"];
    }
    ASSERT_EQ(findings[0].size(), 1u);
    EXPECT_EQ(findings[0][0]["op"], "aten::exp");
    ASSERT_EQ(findings[1].size(), 1u);
    for (const char* key : {"op", "mechanism", "category", "phase", "step", "location", "escapes", "seq"})
        EXPECT_EQ(findings[0][0][key], findings[1][0][key]) << key;
}

TEST(DeviceEvents, AMarkedScopeWaitsItsTurn) {
    OnDevice d;
    MadeUp x{-1}, y{kNan}, parameter{1}, gradient{kNan};
    parameter.flags = kParameter;
    d.scanner.held = true;
    d.op(kLog, {on_device(x.view())}, {on_device(gradient.returned())}, 3);
    d.reaches(on_device(gradient.view()), on_device(parameter.view()));
    d.session.scope_begin("Optimizer.zero_grad#SGD.zero_grad");  // thrown away before the step reads it
    d.session.scope_begin("Optimizer.step#SGD.step");
    d.session.scope_end("Optimizer.step#SGD.step");
    d.scanner.held = false;
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u);
    EXPECT_EQ(report["findings"][0]["severity"], "warning");
}

TEST(DeviceEvents, WhatWasNotReadIsCountedAndBlamedOnNobody) {
    OnDevice d;
    MadeUp x{1}, y{kNan}, z{kNan};
    d.scanner.refuses = "freed before the deferred scan";
    d.op(kMul, {on_device(x.view())}, {on_device(y.returned())});
    d.op(kMul, {on_device(y.view())}, {on_device(z.returned())});
    const json report = d.finish();
    EXPECT_EQ(report["findings"].size(), 0u);
    EXPECT_EQ(report["coverage"]["skipped"]["freed before the deferred scan"], 2);
}

/// Every op is scanned, or left out for one reason.
void expect_that_it_adds_up(const json& coverage) {
    int64_t ops = coverage["scanned"];
    for (const auto& [why, count] : coverage["skipped"].items()) ops += count.get<int64_t>();
    EXPECT_EQ(ops, coverage["ops"]) << coverage;
    EXPECT_FALSE(coverage["skipped"].contains("not judged yet")) << coverage;
}

TEST(DeviceEvents, EveryOpCountsOnce) {
    OnDevice d;
    const OpInfo reduce{"c10d::allreduce_", "", OpClass::Collective, true, 12};
    MadeUp x{1}, y{2}, index{3}, host{4};
    TensorView integers = on_device(index.returned());
    integers.flags &= ~uint32_t(kLater);
    d.op(kMul, {on_device(x.view())}, {on_device(y.returned()), on_device(x.written())});
    d.op(kMul, {on_device(x.view())}, {on_device(y.returned()), integers});
    d.op(kMul, {on_device(x.view())}, {integers});
    d.op(kMul, {on_device(x.view())}, {on_device(x.returned())});  // a view
    d.op(kEmpty, {}, {on_device(y.returned())});
    d.op(reduce, {on_device(y.view())}, {on_device(y.written())});
    d.op(kCopy, {on_device(x.view())}, {host.returned()});
    d.scanner.captures = true;
    d.op(kMul, {on_device(x.view())}, {on_device(y.returned())});
    d.scanner.captures = false;
    d.session.skipped("sparse");
    d.op(kMul, {on_device(x.view())}, {on_device(y.returned())});
    const json report = d.finish();
    const json& coverage = report["coverage"];
    expect_that_it_adds_up(coverage);
    EXPECT_EQ(coverage["scanned"], 3) << coverage;
    EXPECT_EQ(
        coverage["skipped"],
        (json{{"integer", 1}, {"view", 1}, {"allocation", 1}, {"collective", 1}, {"captured", 1}, {"sparse", 1}}));
    EXPECT_EQ(report["verdict"], "clean");
}

TEST(DeviceEvents, TheReportSaysWhatWasSeenOfDevices) {
    for (const char* options : {"", "tier=boundary"}) {
        OnDevice d(options);
        MadeUp x{1}, y{2};
        d.op(kMul, {on_device(x.view())}, {on_device(y.returned())});
        const json report = d.finish();
        const bool chosen = options[0] != '\0';
        EXPECT_EQ(report["run"]["tier"], chosen ? "boundary" : "sentinel");
        EXPECT_EQ(report["run"]["tiers"]["cpu"], chosen ? "boundary" : "full");
        EXPECT_EQ(report["run"]["tiers"]["cuda"], chosen ? "boundary" : "sentinel");
        EXPECT_EQ(report["run"]["devices"],
                  json::parse(R"([{"index": 0, "name": "a made-up device", "compute_capability": "9.0"}])"));
        EXPECT_EQ(report["cost"]["device_bytes"], 4096);
        EXPECT_EQ(report["verdict"], "clean");
    }
}

TEST(DeviceEvents, WhatWasLostMakesTheReportIncomplete) {
    MadeUp x{1}, y{2};
    {
        OnDevice d;
        d.scanner.lost_hits = 3;
        d.op(kMul, {on_device(x.view())}, {on_device(y.returned())});
        const json report = d.finish();
        EXPECT_EQ(report["coverage"]["dropped"], 3);
        EXPECT_EQ(report["verdict"], "incomplete");
    }
    {
        OnDevice d;
        d.scanner.takes_nothing = true;
        d.op(kMul, {on_device(x.view())}, {on_device(y.returned())});
        const json report = d.finish();
        EXPECT_EQ(report["coverage"]["skipped"], (json{{"cuda", 1}}));
        EXPECT_EQ(report["verdict"], "incomplete");
    }
    {
        OnDevice d;
        d.scanner.refuses = "more streams than there is room for";
        d.loss(y);
        const json report = d.finish();
        EXPECT_EQ(report["verdict"], "incomplete");
        EXPECT_NE(report["coverage"]["blind_spots"].dump().find(
                      "values that left a device: 1 could not be read: more streams than there is room for"),
                  std::string::npos)
            << report["coverage"];
    }
}

TEST(DeviceEvents, MoreValuesAtOnceThanCanBeWatchedAreToldToBeUnread) {
    for (const size_t count : {63u, 70u}) {
        OnDevice d;
        MadeUp x{1}, host{1};
        const std::vector<TensorView> inputs(count, on_device(x.view()));
        d.op(kCopy, inputs, {host.returned()});
        const json report = d.finish();
        EXPECT_EQ(report["verdict"], count > 63 ? "incomplete" : "clean");
        const bool told = report["coverage"]["blind_spots"].dump().find(
                              "values that left a device: 7 could not be read: they left with more than 63 tensors "
                              "at once") != std::string::npos;
        EXPECT_EQ(told, count > 63) << report["coverage"];
    }
}

TEST(DeviceEvents, ALostHitStillNamesTheOp) {
    OnDevice d;
    MadeUp x{-1, 2}, y{kNan, 1};
    d.scanner.loses_hits = true;
    d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 3);
    d.loss(y);
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u);
    EXPECT_EQ(report["findings"][0]["op"], "aten::log");
}

TEST(DeviceEvents, AValueThatComesToTheHostIsNoBirthThere) {
    OnDevice d;
    MadeUp x{-1, 2}, y{kNan, 1}, host{kNan, 1}, product{kNan, 2};
    d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 3);
    d.session.before_wait();
    d.op(kCopy, {on_device(y.view())}, {host.returned()}, 4);
    d.played.op(kMul, {host.view()}, {product.returned()}, 5);
    d.played.loss(product);
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u);
    EXPECT_EQ(report["findings"][0]["op"], "aten::log");
}

TEST(DeviceEvents, MemoryThatTheDeviceWillWriteIsNotReadBefore) {
    for (const bool bad : {false, true}) {
        OnDevice d;
        const float value = bad ? kNan : 1;
        MadeUp x{-1, 2}, y{value, 1}, host{kNan, kNan}, product{value, 2};  // what the host's memory held before
        d.scanner.pinned = host.values.data();
        d.scanner.held = true;
        d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 3);
        d.session.before_wait();
        d.op(kCopy, {on_device(y.view())}, {host.returned()}, 4);
        d.scanner.held = false;
        host.values = {value, 1};  // the program has waited
        d.played.op(kMul, {host.view()}, {product.returned()}, 5);
        d.played.loss(product);
        const json report = d.finish();
        ASSERT_EQ(report["findings"].size(), bad ? 1u : 0u) << report["findings"].dump(1);
        if (!bad) continue;
        EXPECT_EQ(report["findings"][0]["op"], "aten::log");
    }
}

TEST(DeviceEvents, AValueFromTheHostIsFollowedToTheDevice) {
    OnDevice d;
    MadeUp x{-1, 2}, y{kNan, 1}, device{kNan, 1}, product{kNan, 2};
    d.played.op(kLog, {x.view()}, {y.returned()}, 3);
    d.op(kCopy, {y.view()}, {on_device(device.returned())}, 4);
    d.op(kMul, {on_device(device.view())}, {on_device(product.returned())}, 5);
    d.loss(product);
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u);
    EXPECT_EQ(report["findings"][0]["op"], "aten::log");
}

TEST(DeviceEvents, MemoryThatNobodyWroteIsKnownOnADevice) {
    OnDevice d;
    MadeUp memory{kNan, 1}, y{kNan, 2};
    d.op(kEmpty, {}, {on_device(memory.returned())});
    d.op(kMul, {on_device(memory.view())}, {on_device(y.returned())}, 4);
    d.loss(y);
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u);
    EXPECT_EQ(report["findings"][0]["mechanism"], "UNINIT");
}

TEST(DeviceEvents, InPlaceWritesAreAnnounced) {
    OnDevice d;
    MadeUp x{1}, y{2};
    d.session.before_write(&x);
    EXPECT_TRUE(d.scanner.written.empty()) << "no device was seen yet";
    d.op(kMul, {on_device(x.view())}, {on_device(y.returned())});
    d.session.before_write(&x);
    EXPECT_EQ(d.scanner.written, std::vector<const void*>{&x});
    d.finish();
}

TEST(DeviceEvents, MoreThanTheWindowIsSkippedNotMixed) {
    OnDevice d;
    d.scanner.numbers = 8;
    d.scanner.held = true;
    MadeUp x{1}, y{2};
    for (int i = 0; i < 20; ++i) d.op(kMul, {on_device(x.view())}, {on_device(y.returned())});
    EXPECT_LE(d.scanner.scans, 8);
    d.scanner.held = false;
    const json report = d.finish();
    EXPECT_EQ(report["findings"].size(), 0u);
    EXPECT_EQ(report["coverage"]["skipped"].value("behind", 0), 20 - d.scanner.scans);
}

TEST(DeviceEvents, TheRingOfEventsGoesRound) {
    OnDevice d;
    MadeUp x{1}, y{2};
    const int rounds = static_cast<int>(3 * DeviceLog::kBytes / 1000);
    for (int i = 0; i < rounds; ++i) d.op(kMul, {on_device(x.view()), on_device(y.view())}, {on_device(y.returned())});
    MadeUp bad{-1}, z{kNan};
    d.op(kLog, {on_device(bad.view())}, {on_device(z.returned())}, 3);
    d.loss(z);
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u);
    EXPECT_EQ(report["findings"][0]["seq"], rounds);
}

TEST(DeviceEvents, SeveralThreadsMeetInOneOrder) {
    OnDevice d;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            MadeUp x{1}, y{2};
            for (int i = 0; i < 500; ++i) d.op(kMul, {on_device(x.view())}, {on_device(y.returned())});
        });
    }
    for (std::thread& thread : threads) thread.join();
    const json report = d.finish();
    EXPECT_EQ(report["coverage"]["ops"], 2000);
    EXPECT_EQ(report["coverage"]["scanned"].get<int>() + report["coverage"]["skipped"].value("behind", 0), 2000);
    EXPECT_EQ(report["findings"].size(), 0u);
}

TEST(DeviceEvents, AGraphTellsAtEachReplay) {
    OnDevice d;
    MadeUp x{1, 2}, y{0, 1};
    d.scanner.captures = true;
    d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 3);
    d.scanner.captures = false;
    d.scanner.replay();
    EXPECT_FALSE(d.played.read().is_object());
    x.values[0] = -1;
    y.values[0] = kNan;
    d.scanner.replay();
    d.loss(y);
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u);
    EXPECT_EQ(report["findings"][0]["op"], "aten::log");
    EXPECT_EQ(report["coverage"]["skipped"].value("cuda", 0), 0);
}

TEST(DeviceEvents, AGraphThatIsGoneIsForgotten) {
    OnDevice d;
    MadeUp x{1, 2}, y{0, 1}, other{1, 2};
    d.scanner.captures = true;
    d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 3);
    d.scanner.captures = false;
    d.read(other);
    d.scanner.ended = {d.scanner.captured()};
    d.read(other);
    y.values[0] = kNan;
    d.scanner.replay();  // a number that is nobody's any more
    d.loss(other);
    EXPECT_EQ(d.finish()["findings"].size(), 0u);
}

TEST(DeviceEvents, WhatAReplayLeftIsForgottenInTheNextStep) {
    OnDevice d;
    MadeUp x{-1, 2}, y{kNan, 1}, other{1};
    d.scanner.captures = true;
    d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 3);
    d.scanner.captures = false;
    d.scanner.replay();
    d.read(other);  // waits for the device
    d.session.scope_begin("Optimizer.step#SGD.step");
    d.session.scope_end("Optimizer.step#SGD.step");
    y.values[0] = 0;
    d.scanner.replay();
    d.loss(y);
    EXPECT_EQ(d.finish()["findings"].size(), 0u);
}

TEST(DeviceEvents, AForkedChildLeavesTheDeviceAlone) {
    OnDevice d;
    MadeUp x{1}, y{2};
    d.scanner.held = true;
    d.op(kMul, {on_device(x.view())}, {on_device(y.returned())});
    d.session.before_fork();
    const pid_t child = fork();
    if (child == 0) {
        d.session.after_fork_in_child();
        d.op(kMul, {on_device(x.view())}, {on_device(y.returned())});
        _exit(d.scanner.closes == 1 ? 0 : 1);
    }
    d.session.after_fork_in_parent();
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    d.scanner.held = false;
    EXPECT_EQ(d.finish()["findings"].size(), 0u);
}

}  // namespace
}  // namespace numsan
