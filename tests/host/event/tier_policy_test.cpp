#include "host/event/tier_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

const OpInfo kMm{"aten::mm", "", OpClass::Other, false, 1};
const OpInfo kMul{"aten::mul", "", OpClass::Other, false, 2};
const OpInfo kStep{"aten::_fused_adamw_", "", OpClass::Other, true, 3};

OutputSet reads(TierPolicy& policy, const OpInfo& op, const std::vector<TensorView>& outputs) {
    OpEvent event{};
    event.op = &op;
    event.outputs = outputs.data();
    event.output_count = static_cast<int32_t>(outputs.size());
    return policy.reads(event);
}

const MadeUp tiny{1, 2};
const MadeUp small(std::vector<float>(8192));
const MadeUp large(std::vector<float>(100000));
const MadeUp parameter(std::vector<float>(100000), kRequiresGrad | kLeaf);

TEST(TierPolicy, SentinelReadsWhatIsTinyAndWrittenParameters) {
    TierPolicy policy(Tier::Sentinel);
    EXPECT_EQ(reads(policy, kMm, {large.returned()}), OutputSet{});
    EXPECT_EQ(reads(policy, kMul, {small.returned(), tiny.returned()}), OutputSet::only(1));
    EXPECT_EQ(reads(policy, kStep, {parameter.written(), large.written()}), OutputSet::only(0));
    EXPECT_EQ(reads(policy, kMul, {parameter.view()}), OutputSet{});
    EXPECT_EQ(reads(policy, kMul, {tiny.returned(), tiny.returned()}), OutputSet::all())
        << "nothing is left for the log";
}

TEST(TierPolicy, BoundaryAddsWhatIsSmallAndLayersResults) {
    TierPolicy policy(Tier::Boundary);
    EXPECT_EQ(reads(policy, kMm, {large.returned()}), OutputSet::all());
    EXPECT_EQ(reads(policy, kMm, {large.returned()}), OutputSet::all()) << "as remembered";
    EXPECT_EQ(reads(policy, kMul, {small.returned(), large.returned()}), OutputSet::only(0));
}

TEST(TierPolicy, ManyOutputsShareTheLastBit) {
    TierPolicy policy(Tier::Sentinel);
    std::vector<TensorView> outputs(70, large.written());
    EXPECT_EQ(reads(policy, kStep, outputs), OutputSet{});
    outputs[68] = parameter.written();
    EXPECT_EQ(reads(policy, kStep, outputs), OutputSet::only(63));
    std::fill_n(outputs.begin(), 63, tiny.written());
    EXPECT_EQ(reads(policy, kStep, outputs), OutputSet::all()) << "one of those behind it is read, so all are";
    outputs[68] = large.written();
    EXPECT_EQ(reads(policy, kStep, outputs), OutputSet::only(63).others());
}

TEST(TierPolicy, AnAlarmLastsSomeSteps) {
    TierPolicy policy(Tier::Sentinel);
    EXPECT_FALSE(policy.reads_all(0));
    policy.alarm(5);
    EXPECT_TRUE(policy.reads_all(5));
    EXPECT_TRUE(policy.reads_all(5 + TierPolicy::kAlarmSteps));
    EXPECT_FALSE(policy.reads_all(6 + TierPolicy::kAlarmSteps));
    policy.alarm(1);
    EXPECT_TRUE(policy.reads_all(8)) << "an older alarm shortens none";
}

TEST(TierPolicy, ADevicesAlarmThatGoesOnIsBelievedLessAndLessOften) {
    TierPolicy policy(Tier::Sentinel, TierPolicy::Memory::Device);
    const auto read_of = [&](int64_t from, int64_t to, int64_t period = 1) {
        int64_t read = 0;
        for (int64_t step = from; step < to; ++step) {
            if ((step - from) % period == 0) policy.alarm(step);
            read += policy.reads_all(step);
        }
        return read;
    };
    EXPECT_EQ(read_of(5, 8), 3) << "at first";
    EXPECT_LE(read_of(8, 100), 20);
    EXPECT_LE(read_of(100, 10000), 80);
    EXPECT_FALSE(policy.is_alarmed(20000));
    EXPECT_EQ(read_of(20000, 20004), 4) << "after a long silence";
    int64_t begun = 30000;
    for (const int64_t period : {2, 5, 6, 10, 50}) {
        EXPECT_LE(read_of(begun, begun + 10000, period), 120) << "every " << period << " steps";
        begun += 20000;
    }
    policy.alarm(begun);
    policy.alarm(begun - 500);  // of an event that is judged late
    policy.alarm(begun + 5);
    EXPECT_FALSE(policy.reads_all(begun + 5)) << "there was no silence";

    TierPolicy host(Tier::Sentinel);
    for (int64_t step = 5; step < 50; ++step) {
        host.alarm(step);
        EXPECT_TRUE(host.reads_all(step));
    }
}

TEST(TierPolicy, FullReadsAllAndKeepsNoLog) {
    EXPECT_TRUE(TierPolicy(Tier::Full).reads_all(0));
    EXPECT_TRUE(TierPolicy(Tier::Auto).reads_all(0));
    EXPECT_FALSE(TierPolicy(Tier::Auto).keeps_log());
    EXPECT_TRUE(TierPolicy(Tier::Boundary).keeps_log());
}

}  // namespace
}  // namespace numsan
