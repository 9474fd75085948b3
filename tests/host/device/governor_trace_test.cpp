// Which outputs are read of recorded training steps, in a time that passes as a device would need it: budgets are kept
// over thousands of steps, steps are read as a whole, and an alarm breaks the budget for as long as it lasts.
#include <gtest/gtest.h>

#include <algorithm>

#include "host/device/device_side.h"
#include "tests/host/device/held_scanner.h"
#include "tests/host/device/step_trace.h"
#include "tests/host/event/storages.h"

namespace numsan {
namespace {

const StepTrace& gpt2() {
    static const StepTrace trace("gpt2-124m-b8.txt");
    return trace;
}

int64_t time_now = 0;

OpEvent event_of(const StepTrace::Event& event) {
    OpEvent out{};
    out.op = event.op;
    out.outputs = event.outputs.data();
    out.output_count = static_cast<int32_t>(event.outputs.size());
    return out;
}

struct StepRead {
    enum What { Nothing, ByTier, All, Mixed } what;
    int64_t outputs = 0, spent = 0, took = 0;
};

/// A session's decisions, on a device whose ops take `slowness` times what an H200's memory needs for them.
class Simulated {
  public:
    Simulated(Tier tier, double budget, double warmup, double slowness = 1)
        : options_(options_of(tier, budget, warmup)),
          side_(
              std::make_unique<DeviceSide>(scanner_, options_, &Storages::kAdapter.storages, [] { return time_now; })),
          slowness_(slowness) {}

    DeviceSide& side() { return *side_; }

    /// The bad value shows at the loss of the step.
    StepRead run(const StepTrace& trace, bool bad = false) {
        StepRead step{};
        TierPolicy whole(options_.tier, TierPolicy::Memory::Device);
        bool all = true, by_tier = true, nothing = true;
        for (const StepTrace::Event& event : trace.events) {
            if (event.kind != StepTrace::Kind::Op) {
                spend(step, event, OutputSet::all());
                if (bad && event.kind == StepTrace::Kind::Loss) {
                    side_->alarm(number_);
                    all = by_tier = nothing = true;  // what is read before it is another matter
                }
                continue;
            }
            const OpEvent op = event_of(event);
            const OutputSet read = side_->reads(op, number_);
            all &= read.is_all();
            nothing &= !read.any();
            by_tier &= read == whole.reads(op);
            spend(step, event, read);
            const int64_t moved = 3 * event.bytes / kBytesPerNanosecond;
            step.took += static_cast<int64_t>(slowness_ * static_cast<double>(std::max<int64_t>(moved, 2500)));
            time_now = began_ + step.took;
        }
        began_ = time_now;
        ++number_;
        step.what = all ? StepRead::All : nothing ? StepRead::Nothing : by_tier ? StepRead::ByTier : StepRead::Mixed;
        return step;
    }

  private:
    static constexpr int64_t kBytesPerNanosecond = 4300;  // a copy's rate

    static Options options_of(Tier tier, double budget, double warmup) {
        Options options;
        options.tier = tier;
        options.budget = budget;
        options.warmup = warmup;
        return options;
    }
    void spend(StepRead& step, const StepTrace::Event& event, OutputSet read) {
        int64_t outputs = 0, bytes = 0;
        for (size_t i = 0; i < event.outputs.size(); ++i) {
            if (!read.contains(static_cast<int32_t>(i))) continue;
            ++outputs;
            bytes += event.outputs[i].numel * 2;
        }
        if (outputs == 0) return;
        const int64_t cost = Governor::cost(1, bytes);
        side_->governor.spend(cost);
        step.outputs += outputs;
        step.spent += cost;
    }

    HeldScanner scanner_;
    const Options options_;
    std::unique_ptr<DeviceSide> side_;
    const double slowness_;
    int64_t number_ = 0, began_ = time_now;
};

TEST(GovernorTrace, ThePolicyReadsWhatTheModelSays) {
    for (const auto& [memory, name] :
         {std::pair(TierPolicy::Memory::Host, "host"), {TierPolicy::Memory::Device, "device"}}) {
        for (const auto& [tier, word] : {std::pair(Tier::Boundary, "boundary"), {Tier::Sentinel, "sentinel"}}) {
            TierPolicy policy(tier, memory);
            StepTrace::Read read;
            for (const StepTrace::Event& event : gpt2().events) {
                if (event.kind != StepTrace::Kind::Op || event.outputs.size() > 63) continue;
                const OutputSet mask = policy.reads(event_of(event));
                for (size_t i = 0; i < event.outputs.size(); ++i) {
                    if (!mask.contains(static_cast<int32_t>(i))) continue;
                    ++read.outputs;
                    read.bytes += event.outputs[i].numel * 2;
                }
            }
            const StepTrace::Read& want = gpt2().read.at(std::string(name) + " " + word);
            EXPECT_EQ(read.outputs, want.outputs) << name << " " << word;
            EXPECT_EQ(read.bytes, want.bytes) << name << " " << word;
        }
    }
}

struct Share {
    Tier tier;
    double budget, share, slowness;
};
void PrintTo(const Share& s, std::ostream* out) {
    *out << 100 * s.share << " % of a step " << s.slowness << " x as long";
}

class Budgets : public testing::TestWithParam<Share> {};

TEST_P(Budgets, AreKeptOverManySteps) {
    const Share& given = GetParam();
    constexpr double kCredit = 0.1;
    Simulated run(given.tier, given.budget, kCredit, given.slowness);
    int64_t spent = 0, took = 0, most = 0, lean = 0, whole = 0, opening = 0;
    for (int i = 0; i < 4000; ++i) {
        const StepRead step = run.run(gpt2());
        ASSERT_NE(step.what, StepRead::Mixed) << "a step is read as a whole";
        spent += step.spent;
        took += step.took;
        most = std::max(most, step.spent);
        if (step.what == StepRead::Nothing) {
            ++lean;
        } else if (lean == 0) {
            ++opening;
        } else {
            ++whole;
        }
    }
    EXPECT_GT(opening, 0);
    EXPECT_GT(lean, whole) << "what is left out is most of it";
    EXPECT_GT(whole, 10) << "what may be spent is";
    const double beyond = double(spent) - kCredit * 1e9, earned = given.share * double(took);
    EXPECT_LE(beyond, earned + double(most));
    EXPECT_GE(beyond, 0.95 * earned - double(most));
}

// Where nothing but the loss and the gradients is read, a launch for each of them takes more than 1 % of a short step:
// sentinel is measured on a slower device.
INSTANTIATE_TEST_SUITE_P(Tiers, Budgets,
                         testing::Values(Share{Tier::Auto, 5, 0.01, 8}, Share{Tier::Sentinel, 5, 0.01, 20},
                                         Share{Tier::Boundary, 5, 0.05, 1}, Share{Tier::Boundary, 2, 0.02, 8},
                                         Share{Tier::Full, 5, 0.05, 1}, Share{Tier::Full, 10, 0.1, 3}));

TEST(GovernorTrace, TheOpeningReadsEverythingAndIsPaidForByTheCredit) {
    Simulated run(Tier::Boundary, 5, 0.1);
    int64_t spent = 0;
    StepRead step = run.run(gpt2());
    for (; step.what == StepRead::All; step = run.run(gpt2())) spent += step.spent;
    EXPECT_EQ(step.what, StepRead::Nothing);
    EXPECT_GT(spent, 50'000'000);
    EXPECT_LT(spent, 150'000'000);
    for (int i = 0; step.what == StepRead::Nothing; ++i, step = run.run(gpt2())) ASSERT_LT(i, 1000);
    EXPECT_EQ(step.what, StepRead::ByTier) << "after the opening the tier reads its own part";
}

TEST(GovernorTrace, AnAlarmReadsEverythingForAsLongAsItLasts) {
    Simulated run(Tier::Auto, 5, 0, 8);
    EXPECT_EQ(run.run(gpt2()).what, StepRead::Nothing) << "no credit, no opening";
    for (int i = 0; i < 20; ++i) run.run(gpt2());
    EXPECT_EQ(run.run(gpt2(), true).what, StepRead::All) << "from the loss on";
    int64_t alarmed = 0;
    for (int64_t i = 0; i < TierPolicy::kAlarmSteps; ++i) {
        const StepRead step = run.run(gpt2());
        EXPECT_EQ(step.what, StepRead::All) << i;
        alarmed += step.spent;
    }
    int64_t repaid = 0, earned = 0;
    for (StepRead step = run.run(gpt2()); step.what == StepRead::Nothing; step = run.run(gpt2())) {
        ++repaid;
        earned += step.took / 100 - step.spent;
    }
    EXPECT_GT(repaid, 0) << "what the alarm took is owed";
    EXPECT_GE(earned, alarmed / 2);
}

TEST(GovernorTrace, ARunThatStaysBadCostsWhatAHealthyOneDoes) {
    Simulated bad(Tier::Auto, 5, 0, 8), healthy(Tier::Auto, 5, 0, 8);
    for (int i = 0; i < 20; ++i) {
        bad.run(gpt2());
        healthy.run(gpt2());
    }
    for (int64_t i = 0; i <= TierPolicy::kAlarmSteps; ++i) bad.run(gpt2(), true);
    int64_t took = 0, spent = 0, healthy_took = 0, healthy_spent = 0;
    for (int i = 0; i < 1000; ++i) {
        const StepRead step = bad.run(gpt2(), true), other = healthy.run(gpt2());
        took += step.took, spent += step.spent;
        healthy_took += other.took, healthy_spent += other.spent;
    }
    RecordProperty("percent of the time", std::to_string(100 * double(spent) / double(took)));
    RecordProperty("of a healthy run", std::to_string(100 * double(healthy_spent) / double(healthy_took)));
    EXPECT_LE(double(spent) / double(took), 1.25 * double(healthy_spent) / double(healthy_took));
}

TEST(GovernorTrace, WithoutABudgetEveryStepIsRead) {
    Simulated full(Tier::Full, 0, 0), boundary(Tier::Boundary, 0, 0);
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(full.run(gpt2()).what, StepRead::All);
        EXPECT_EQ(boundary.run(gpt2()).what, StepRead::ByTier);
    }
}

}  // namespace
}  // namespace numsan
