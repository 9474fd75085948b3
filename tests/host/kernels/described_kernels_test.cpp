// Kernels of which more is known than their names say: by a file, by debug information.
#include "host/kernels/kernel_events.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/host/kernels/seen_events.h"

namespace numsan {
namespace {

using DescribedEvents = std::vector<std::string>;

TEST(DescribedKernels, WhatAUserSaysOfAKernelCounts) {
    std::vector<std::string> complaints;
    KernelManifest manifest = KernelManifest::parse(R"(
        [[kernel]]
        symbol = "opaque"
        writes = [{ argument = 0, type = "float32", count = 8 }]
        reads = [{ argument = 1, type = "float16", offset = 8 }, { argument = 900, type = "float32" }]
    )",
                                                    "kernels.toml", complaints);
    ASSERT_TRUE(complaints.empty());
    SeenEvents seen;
    KernelEvents events(seen, std::move(manifest));
    events.allocated(0x1000, 256, false);
    events.allocated(0x2000, 256, false);
    uint64_t to = 0x1000;
    const struct {
        int64_t count;
        uint64_t from;
    } given{3, 0x2000};
    const void* arguments[] = {&to, &given};
    const SeenLaunch launch{"opaque", const_cast<void**>(arguments), DeviceQueue{nullptr, -1, true}};
    events.before_launch(launch);
    events.after_launch(launch);
    EXPECT_EQ(seen.take(), (DescribedEvents{"ignored contents of memory( 1000:64 2000:128) -> 1000:64 -> 2000:128",
                                            "opaque<<<>>>( 1000:8 2000:128) -> 1000:8"}));
    EXPECT_EQ(events.counts().scanned, 1);
    EXPECT_TRUE(events.counts().unseen.empty());
}

using Unmet = std::vector<std::pair<std::string, std::string>>;

/// What a launch of scale(float* to, float const* from, float by) is taken for where a file says so of it.
std::string scaled_as_described(const std::string& kernels, Unmet* unmet = nullptr) {
    std::vector<std::string> complaints;
    SeenEvents seen;
    KernelEvents events(seen, KernelManifest::parse(kernels, "kernels.toml", complaints));
    EXPECT_TRUE(complaints.empty()) << complaints.front();
    events.allocated(0x1000, 256, false);
    events.allocated(0x2000, 256, false);
    uint64_t to = 0x1000, from = 0x2000;
    float by = INFINITY;
    void* arguments[] = {&to, &from, &by};
    const SeenLaunch launch{"_Z5scalePfPKff", arguments, DeviceQueue{nullptr, -1, true}};
    events.before_launch(launch);
    seen.take();
    events.after_launch(launch);
    EXPECT_TRUE(seen.meant) << "the number that it is given by value is still seen";
    if (unmet != nullptr) *unmet = events.counts().unmet;
    return seen.take().at(0);
}

/// As debug information has it: step(Moments) of two pointers behind a number, and scale(float*, void*, float).
std::optional<StubParameters> known_parameters(const char* symbol) {
    using Use = KernelParameter::Use;
    const std::string_view name = symbol;
    if (name == "step") {
        return StubParameters{1,
                              {{.use = Use::Writes, .dtype = DType::Float32, .argument = 0, .offset = 8},
                               {.use = Use::Reads, .dtype = DType::Float64, .argument = 0, .offset = 16},
                               {.use = Use::Number, .dtype = DType::Float32, .argument = 0, .offset = 24}}};
    }
    if (name == "_Z4movePfPv") return StubParameters{2, {{.use = Use::Writes}, {.use = Use::Others, .argument = 1}}};
    if (name == "_Z5otheriPv") return StubParameters{3, {{.use = Use::Writes, .argument = 2}}};
    return std::nullopt;
}

TEST(DescribedKernels, WhatDebugInformationSaysCountsWhereTheNameDoesNotSayAll) {
    SeenEvents seen;
    KernelEvents events(seen, {}, known_parameters);
    for (const uint64_t address : {0x1000, 0x2000, 0x3000}) events.allocated(address, 256, false);
    const auto run = [&](const char* symbol, void* const* arguments) {
        const SeenLaunch launch{symbol, arguments, DeviceQueue{nullptr, -1, true}};
        events.before_launch(launch);
        events.after_launch(launch);
        return seen.take().empty() ? "" : "events";
    };
    struct {
        int count = 3;
        uint64_t to = 0x1000, from = 0x2000;
        float by = 2;
    } moments;
    void* of_step[] = {&moments};
    const auto step = [&] {
        const SeenLaunch launch{"step", of_step, DeviceQueue{nullptr, -1, true}};
        events.before_launch(launch);
        events.after_launch(launch);
        return seen.take().back();
    };
    EXPECT_EQ(step(), "step<<<>>>( 1000:64 2000:32) -> 1000:64");
    EXPECT_FALSE(seen.meant);
    moments.by = INFINITY;
    step();
    EXPECT_TRUE(seen.meant) << "a number in the struct";
    EXPECT_EQ(events.counts().partly, 0);

    uint64_t to = 0x1000, integers = 0x3000;
    void* of_move[] = {&to, &integers};
    run("_Z4movePfPv", of_move);
    EXPECT_EQ(events.counts().partly, 0) << "move(float*, void*): it has been seen that these are integers";
    run("_Z5otheriPv", of_move);
    EXPECT_EQ(events.counts().unseen.count("other<<<>>>"), 1u) << "a stub with other arguments is another kernel's";
    run("unknown", of_move);
    EXPECT_EQ(events.counts().unseen.count("unknown<<<>>>"), 1u);
}

TEST(DescribedKernels, DebugInformationIsReadForSoLong) {
    SeenEvents seen;
    KernelEvents events(seen, {}, known_parameters, std::chrono::nanoseconds(1));
    uint64_t nothing = 0;
    void* arguments[] = {&nothing, &nothing};
    for (const char* const symbol : {"_Z4movePfPv", "step", "unknown", "step", "_Z5scalePf"}) {
        const SeenLaunch launch{symbol, arguments, DeviceQueue{nullptr, -1, true}};
        events.before_launch(launch);
        events.after_launch(launch);
    }
    EXPECT_EQ(events.counts().unread, 2) << "each kernel once, and none whose name says all";
    EXPECT_EQ(events.counts().unseen.count("step<<<>>>"), 1u);
}

TEST(DescribedKernels, ADescriptionIsHeldAgainstDebugInformation) {
    const char* const kernels =
        "[[kernel]]\nsymbol = \"step\"\nwrites = [{ argument = 0, offset = 8, type = \"float16\" }]\n"
        "[[kernel]]\nsymbol = \"_Z4movePfPv\"\nreads = [{ argument = 1, type = \"float32\" }]\n";
    std::vector<std::string> complaints;
    SeenEvents seen;
    KernelEvents events(seen, KernelManifest::parse(kernels, "kernels.toml", complaints), known_parameters);
    EXPECT_EQ(complaints, DescribedEvents{});
    uint64_t none = 0;
    void* arguments[] = {&none, &none};
    for (const char* const symbol : {"_Z4movePfPv", "step"}) {
        struct {
            uint64_t words[4] = {};
        } zeros;
        void* of_step[] = {&zeros};
        const bool steps = std::string_view(symbol) == "step";
        const SeenLaunch launch{symbol, steps ? of_step : arguments, DeviceQueue{nullptr, -1, true}};
        events.before_launch(launch);
        events.after_launch(launch);
    }
    const KernelEvents::Counts counts = events.counts();
    ASSERT_EQ(counts.unmet.size(), 1u);
    EXPECT_EQ(counts.unmet[0].first, "step");
    EXPECT_EQ(counts.unmet[0].second, "argument 0 of `step` is float32, not float16");
}

TEST(DescribedKernels, ADescriptionIsForTheKernelThatItMeans) {
    const auto described = [](const std::string& symbol, const std::string& rest) {
        return "[[kernel]]\nsymbol = \"" + symbol + "\"\nwrites = [{ argument = 0, " + rest + "]\n";
    };
    const std::string of_eight = "type = \"float32\", count = 8 }";
    const std::string cut = "scale<<<>>>( 2000:64 1000:8) -> 1000:8";
    Unmet unmet;
    EXPECT_EQ(scaled_as_described(described("_Z5scalePfPKff", of_eight)), cut);
    EXPECT_EQ(scaled_as_described(described("scale(float*, float const*, float)", of_eight)), cut);
    EXPECT_EQ(scaled_as_described(described("scale", of_eight), &unmet), cut);
    EXPECT_EQ(unmet, Unmet{});
    EXPECT_EQ(scaled_as_described(described("scale", "type = \"float16\" }"), &unmet), kScaled)
        << "another kernel of that name is meant";
    const std::string of = "`scale(float*, float const*, float)`";
    EXPECT_EQ(unmet, (Unmet{{"scale", "argument 0 of " + of + " is float32, not float16"}}));
    const std::string fourth = of_eight + ", { argument = 3, type = \"float32\" }";
    EXPECT_EQ(scaled_as_described(described("scale", fourth), &unmet), kScaled);
    EXPECT_EQ(unmet, (Unmet{{"scale", "there is no argument 3 in " + of}}));
    EXPECT_EQ(scaled_as_described(described("other", of_eight), &unmet), kScaled);
    EXPECT_EQ(unmet, (Unmet{{"other", ""}}));
}

TEST(DescribedKernels, AnArgumentThatIsNotThereIsNoHarm) {
    std::vector<std::string> complaints;
    SeenEvents seen;
    KernelEvents events(seen, KernelManifest::parse("[[kernel]]\nsymbol = \"f\"\nwrites = [{argument = 1, type = "
                                                    "\"float32\"}]\n",
                                                    "kernels.toml", complaints));
    void* arguments[] = {nullptr, reinterpret_cast<void*>(8)};
    const SeenLaunch launch{"f", arguments, DeviceQueue{nullptr, -1, true}};
    events.before_launch(launch);
    events.after_launch(launch);
    EXPECT_EQ(seen.take(), DescribedEvents{});
    EXPECT_EQ(events.counts().elsewhere, 1) << "nothing of what it is said to write was looked at";
}

}  // namespace
}  // namespace numsan
