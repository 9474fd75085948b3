#include "host/kernels/kernel_events.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/host/kernels/seen_events.h"

namespace numsan {
namespace {

using Events = std::vector<std::string>;

TEST(KernelEvents, ALaunchReadsAndWritesItsBuffersAsFarAsTheyGo) {
    PlainProgram p;
    p.scale(0x1000, 0x2000);
    EXPECT_EQ(p.seen.take(), (Events{"ignored contents of memory( 1000:64 2000:64) -> 1000:64 -> 2000:64", kScaled}));
    EXPECT_FALSE(p.seen.meant);
    p.scale(0x1000, 0x2000);
    EXPECT_EQ(p.seen.take(), Events{kScaled}) << "what is in them is known";
    p.scale(0x1040, 0x2000);
    p.seen.take();
    p.scale(0x1000, 0x2000);
    EXPECT_EQ(p.seen.take(), Events{kScaled}) << "an address within it";
    p.run("_Z5countPi", 0x1040);  // count(int*)
    p.scale(0x1000, 0x2000);
    EXPECT_EQ(p.seen.take().back(), "scale<<<>>>( 1000:16 2000:64) -> 1000:16") << "what lies behind is no float";
    EXPECT_EQ(p.events.counts().scanned, 6);
}

TEST(KernelEvents, WhatAnybodyElseWroteIsLookedAtFirst) {
    const char* const first = "ignored contents of memory( 1000:64) -> 1000:64";
    PlainProgram p;
    p.scale(0x1000, 0x2000);
    p.seen.take();
    p.events.copied("cuMemcpyHtoDAsync_v2", 0x1000, 0x77770000, 256, {});
    EXPECT_EQ(p.seen.take(), Events{});
    p.scale(0x1000, 0x2000);
    EXPECT_EQ(p.seen.take(), (Events{first, kScaled}));
    p.events.written(0x1010);
    p.scale(0x1000, 0x2000);
    EXPECT_EQ(p.seen.take(), (Events{first, kScaled}));
    p.run("opaque", 0x1000);
    EXPECT_EQ(p.seen.take(), Events{}) << "what it writes is not known";
    p.scale(0x1000, 0x2000);
    EXPECT_EQ(p.seen.take().size(), 2u);
    p.events.after_unknown_launch();
    p.scale(0x1000, 0x2000);
    EXPECT_EQ(p.seen.take().size(), 2u);
    p.events.forget();
    p.scale(0x1000, 0x2000);
    EXPECT_EQ(p.seen.take(), Events{}) << "memory that is not known has no end";
    EXPECT_EQ(p.events.counts().unseen, (std::map<std::string, int64_t>{{"opaque<<<>>>", 1}}));
    EXPECT_EQ(p.events.counts().elsewhere, 1);
}

TEST(KernelEvents, IntegersInABufferAreNoNumbersOfTheNextKernel) {
    PlainProgram p;
    p.scale(0x1000, 0x2000);
    p.run("_Z5countPi", 0x1000);  // count(int*)
    p.seen.take();
    p.scale(0x1000, 0x2000);
    EXPECT_EQ(p.seen.take(), (Events{"ignored contents of memory( 1000:64) -> 1000:64", kScaled}));
    EXPECT_EQ(p.events.counts().scanned, 3);
}

TEST(KernelEvents, TwoBuffersOfALaunchInOneAllocation) {
    PlainProgram p;
    p.events.allocated(0x4000, 4096, false);
    p.scale(0x4000, 0x4800);
    EXPECT_EQ(p.seen.take().back(), "scale<<<>>>( 4000:512 4800:512) -> 4000:512");
    p.scale(0x4800, 0x4000);
    EXPECT_EQ(p.seen.take().back(), "scale<<<>>>( 4800:512 4000:512) -> 4800:512");
    p.scale(0x4000, 0x4004);
    EXPECT_EQ(p.seen.take().back(), "scale<<<>>>( 4000:1024 4004:1023) -> 4000:1024") << "a neighbour";
}

TEST(KernelEvents, WhatAKernelMayHaveWrittenBeyondAPlaceThatItIsGivenIsLookedAtFirst) {
    PlainProgram p;
    p.events.allocated(0x4000, 4096, false);
    p.scale(0x1000, 0x4800);
    p.scale(0x4000, 0x4800);
    p.seen.take();
    p.scale(0x1000, 0x4800);
    EXPECT_EQ(p.seen.take(), (Events{"ignored contents of memory( 4800:512) -> 4800:512",
                                     "scale<<<>>>( 1000:64 4800:512) -> 1000:64"}));
}

TEST(KernelEvents, WhatGoesIntoAGraphIsNotLookedAt) {
    PlainProgram p;
    uint64_t to = 0x1000, from = 0x2000;
    float by = 2;
    void* arguments[] = {&to, &from, &by};
    const SeenLaunch captured{"_Z5scalePfPKff", arguments, DeviceQueue{nullptr, -1, true}, true};
    p.events.before_launch(captured);
    p.events.after_launch(captured);
    EXPECT_EQ(p.seen.take(), Events{});
    EXPECT_EQ(p.events.counts().captured, 1);
    p.scale(0x1000, 0x2000);
    EXPECT_EQ(p.seen.take().size(), 2u) << "it has not run";
}

TEST(KernelEvents, MemoryThatTheHostMayWriteIsLookedAtBeforeEachLaunch) {
    PlainProgram p;
    p.events.allocated(0x2000, 256, true);
    for (int turn = 0; turn < 2; ++turn) p.scale(0x1000, 0x2000);
    EXPECT_EQ(p.seen.take()[2], "ignored contents of memory( 2000:64) -> 2000:64");
}

TEST(KernelEvents, NamesOfKernelsAreBounded) {
    PlainProgram p;
    for (int i = 0; i < 10000; ++i) p.run(("made_" + std::to_string(i)).c_str(), 0x1000);
    EXPECT_EQ(p.events.counts().unseen.at("other kernels"), 10000 - (1 << 13));
}

TEST(KernelEvents, AKernelWithAnArgumentThatMayLeadAnywhereIsSeenInPart) {
    PlainProgram p;
    p.run("_Z4stepPfPv", 0x1000);  // step(float*, void*)
    EXPECT_EQ(p.seen.take().size(), 2u);
    p.run("_Z4stepPfPv", 0x1000);
    EXPECT_EQ(p.seen.take().size(), 1u) << "its own buffer was looked at when it had written";
    p.scale(0x1000, 0x2000);
    p.seen.take();
    p.run("_Z4stepPfPv", 0x1000);
    p.scale(0x1000, 0x2000);
    EXPECT_EQ(p.seen.take()[1], "ignored contents of memory( 2000:64) -> 2000:64") << "it may have written there";
    EXPECT_EQ(p.events.counts().partly, 3);
    EXPECT_EQ(p.events.counts().scanned, 2);
}

TEST(KernelEvents, AnInfinityThatAKernelIsGivenIsMeant) {
    PlainProgram p;
    p.scale(0x1000, 0x2000, INFINITY);
    EXPECT_TRUE(p.seen.meant);
    p.scale(0x1000, 0x2000, 3e38f);
    EXPECT_FALSE(p.seen.meant);
}

TEST(KernelEvents, BytesThatGoToTheHostAreOfTheTypeThatAKernelHadThere) {
    PlainProgram p;
    p.events.copied("cuMemcpyDtoHAsync_v2", 0x77770000, 0x1000, 64, {});
    EXPECT_EQ(p.seen.take(), Events{}) << "no kernel said what they are";
    p.scale(0x1000, 0x2000);
    p.seen.take();
    int stream = 0;
    p.events.copied("cuMemcpyDtoHAsync_v2", 0x77770000, 0x1010, 64, {&stream, -1, true});
    EXPECT_EQ(p.seen.take(), Events{"cuMemcpyDtoHAsync_v2( 1010:16)"});
    EXPECT_EQ(p.seen.queue.stream, &stream);
    p.events.copied("cuMemcpyDtoHAsync_v2", 0x77770000, 0x1011, 64, {});
    p.events.copied("cuMemcpyDtoHAsync_v2", 0x77770000, 0x1010, 3, {});
    EXPECT_EQ(p.seen.take(), Events{}) << "no whole numbers";
    p.events.after_unknown_launch();
    p.events.copied("cuMemcpyDtoHAsync_v2", 0x77770000, 0x1010, 1 << 20, {});
    EXPECT_EQ(p.seen.take(),
              (Events{"ignored contents of memory( 1000:64) -> 1000:64", "cuMemcpyDtoHAsync_v2( 1010:60)"}));
}

TEST(KernelEvents, LaunchesThatSayNothing) {
    PlainProgram p;
    const SeenLaunch packed{"_Z5scalePfPKff", nullptr, {}};
    p.events.before_launch(packed);
    p.events.after_launch(packed);
    const SeenLaunch unnamed{nullptr, nullptr, {}};
    p.events.before_launch(unnamed);
    p.events.after_launch(unnamed);
    p.run("_Z5scalePfPKff", 0);  // null pointers
    EXPECT_EQ(p.seen.take(), Events{});
    EXPECT_EQ(p.events.counts().unseen, (std::map<std::string, int64_t>{{"(unnamed)<<<>>>", 1}, {"scale<<<>>>", 1}}));
    EXPECT_EQ(p.events.counts().scanned, 1) << "it was given nothing to write";
}

/// c = a b, of 4 x 4 matrices of float32 at those addresses.
LibraryCall product(uint64_t a, uint64_t b, uint64_t c, bool adds = false) {
    LibraryCall call{};
    call.name = "cublasSgemm";
    call.queue = DeviceQueue{nullptr, -1, true};
    for (const uint64_t address : {a, b}) {
        call.buffers[call.count++] = {address, DType::Float32, true, false, 2, {4, 4}, {1, 4}};
    }
    call.buffers[call.count++] = {c, DType::Float32, adds, true, 2, {4, 4}, {1, 4}};
    return call;
}
void make(PlainProgram& p, const LibraryCall& call) {
    p.events.before_call(call);
    p.events.after_call(call);
}

TEST(KernelEvents, ACallOfALibraryReadsAndWritesWhatItIsGiven) {
    PlainProgram p;
    p.events.allocated(0x3000, 256, false);
    make(p, product(0x1000, 0x2000, 0x3000));
    EXPECT_EQ(p.seen.take(),
              (Events{"ignored contents of memory( 1000:64 2000:64 3000:64) -> 1000:64 -> 2000:64 -> 3000:64",
                      "cublasSgemm()( 1000:16 2000:16) -> 3000:16"}));
    make(p, product(0x1000, 0x2000, 0x3000, true));
    EXPECT_EQ(p.seen.take(), (Events{"cublasSgemm()( 1000:16 2000:16 3000:16) -> 3000:16"})) << "all of it is known";
    p.scale(0x1000, 0x3000);
    EXPECT_EQ(p.seen.take().size(), 1u) << "a kernel knows what the call wrote";
    EXPECT_EQ(p.events.counts().scanned, 3);
}

TEST(KernelEvents, ACallThatMayWriteMoreThanItSaysMakesAllUnknown) {
    PlainProgram p;
    p.scale(0x1000, 0x2000);
    LibraryCall call = product(0x1000, 0x1000, 0x2000);
    call.complete = false;
    make(p, call);
    p.seen.take();
    p.scale(0x2000, 0x1000);
    EXPECT_EQ(p.seen.take()[0], "ignored contents of memory( 2000:64 1000:64) -> 2000:64 -> 1000:64");
    EXPECT_EQ(p.events.counts().partly, 1);
}

TEST(KernelEvents, WhatACallUsesAsScratchIsNotKnown) {
    PlainProgram p;
    p.events.allocated(0x3000, 256, false);
    p.scale(0x3000, 0x1000);
    LibraryCall call = product(0x1000, 0x1000, 0x2000);
    call.add_other(reinterpret_cast<void*>(0x3000));
    make(p, call);
    p.seen.take();
    p.scale(0x1000, 0x3000);
    EXPECT_EQ(p.seen.take()[0], "ignored contents of memory( 3000:64) -> 3000:64");
}

TEST(KernelEvents, ScratchBehindTheResultIsNotTakenForWhatItHas) {
    PlainProgram p;
    p.events.allocated(0x4000, 4096, false);
    LibraryCall call = product(0x1000, 0x2000, 0x4000);
    call.add_other(reinterpret_cast<void*>(0x4400));
    make(p, call);
    p.seen.take();
    p.scale(0x1000, 0x4000);
    EXPECT_EQ(p.seen.take()[0], "ignored contents of memory( 4000:256) -> 4000:256") << "up to the scratch";
}

TEST(KernelEvents, ACallBeyondAnAllocationOrInNoneIsNotLookedAt) {
    PlainProgram p;
    p.scale(0x2000, 0x1000);
    make(p, product(0x1000, 0x1000, 0x77770000));
    LibraryCall call = product(0x1000, 0x1000, 0x2000);
    call.buffers[2].strides[1] = 100;
    make(p, call);
    for (const std::string& event : p.seen.take())
        EXPECT_TRUE(event.starts_with("ignored") || event.starts_with("scale")) << event;
    EXPECT_EQ(p.events.counts().elsewhere, 2);
    p.scale(0x1000, 0x2000);
    EXPECT_EQ(p.seen.take()[0], "ignored contents of memory( 2000:64) -> 2000:64") << "something was written there";
    call.captured = true;
    make(p, call);
    EXPECT_EQ(p.events.counts().captured, 1);
}

/// Sixteen numbers go to other ranks, and as many come from them.
LibraryCall exchange(bool sends, bool receives) {
    LibraryCall call{};
    call.name = "ncclAllGather";
    call.queue = DeviceQueue{nullptr, 1, true};
    call.add(reinterpret_cast<void*>(0x1000), {DType::Float32}, 16, true, false);
    call.add(reinterpret_cast<void*>(0x2000), {DType::Float32}, 16, false, true);
    call.sends = sends;
    call.receives = receives;
    return call;
}

TEST(KernelEvents, WhatGoesToOthersIsShownBeforeItDoes) {
    PlainProgram p;
    p.scale(0x1000, 0x2000);
    p.seen.take();
    p.events.before_call(exchange(true, true));
    EXPECT_EQ(p.seen.take(), Events{"ncclAllGather()( 1000:16)"});
    EXPECT_EQ(p.seen.queue.device, 1);
    EXPECT_EQ(p.seen.device, 1);
    p.events.after_call(exchange(true, true));
    EXPECT_EQ(p.seen.take(), Events{"ignored ncclAllGather()( 1000:16) -> 2000:16"});
    make(p, exchange(false, false));
    EXPECT_EQ(p.seen.take(), Events{"ncclAllGather()( 1000:16) -> 2000:16"});
    EXPECT_EQ(p.events.counts().unexplained, 0) << "where it comes from is known";
}

TEST(KernelEvents, ACallOfWhichNothingIsKnownIsCounted) {
    PlainProgram p;
    p.scale(0x1000, 0x2000);
    p.seen.take();
    LibraryCall call = product(0x1000, 0x1000, 0x2000);
    call.unseen = "it is secret";
    make(p, call);
    EXPECT_EQ(p.seen.take(), Events{});
    EXPECT_EQ(p.events.counts().unseen_calls,
              (std::map<std::pair<std::string, std::string>, int64_t>{{{"cublasSgemm", "it is secret"}, 1}}));
    p.scale(0x1000, 0x2000);
    EXPECT_EQ(p.seen.take().size(), 2u) << "it may have written anywhere";
}

TEST(KernelEvents, WhatACallMakesOfNumbersThatAreNotSeenIsNobodysFault) {
    PlainProgram p;
    make(p, product(0x1000, 0x77770000, 0x2000));
    EXPECT_EQ(p.seen.take().back(), "ignored cublasSgemm()( 1000:16) -> 2000:16");
    LibraryCall call = product(0x1000, 0x1000, 0x2000);
    call.explained = false;
    make(p, call);
    EXPECT_EQ(p.seen.take().back(), "ignored cublasSgemm()( 1000:16 1000:16) -> 2000:16");
    EXPECT_EQ(p.events.counts().unexplained, 2);
}

}  // namespace
}  // namespace numsan
