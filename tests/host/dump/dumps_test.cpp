// Dumps: what is kept of births, what gives way, and what is said where there is no file.
#include "host/dump/dumps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/host/dump/made_up_hold.h"
#include "tests/support/builders.h"

namespace numsan {
namespace {

using testing::HasSubstr;
using testing::ScratchFolder;

const OpInfo kSquareRoot{"aten::sqrt", "", OpClass::Other, false, 1};
const OpInfo kLogarithm{"aten::log", "", OpClass::Other, false, 2};

class DumpsOfARun : public ::testing::Test {
  protected:
    DumpsOfARun() {
        options.dump = scratch.file("there/%p");
        options.dump_limit = 1000;
        run.pid = 42;
        run.started = "2026-11-24T09:00:00Z";
        dumps.use(hold.api());
    }

    void keep(BirthId birth, const OpInfo& op = kSquareRoot, StackId stack = 1, int64_t bytes = 10) {
        hold.next(op.name, bytes);
        OpEvent event{};
        event.op = &op;
        OpContext context;
        context.stack = stack;
        dumps.keep({birth}, event, context);
    }

    std::string write(BirthId birth) {
        finding = testing::build_finding();
        finding.dump.reset();
        return dumps.write(finding, birth, run).value_or("");
    }

    ScratchFolder scratch;
    Options options;
    RunSummary run;
    MadeUpHold hold;
    Dumps dumps{options};
    Finding finding;
};

TEST_F(DumpsOfARun, AFileAFindingUntilThereAreEnough) {
    options.dump_findings = 2;
    for (BirthId birth = 1; birth <= 3; ++birth) keep(birth);
    EXPECT_EQ(write(3), "");
    EXPECT_EQ(finding.dump, scratch.file("there/42/numsan-42-1.safetensors"));
    EXPECT_EQ(hold.held(), 2);
    EXPECT_TRUE(dumps.active());
    EXPECT_EQ(write(1), "");
    EXPECT_EQ(finding.dump, scratch.file("there/42/numsan-42-2.safetensors"));
    EXPECT_FALSE(dumps.active());
    EXPECT_EQ(hold.held(), 0) << "what nobody will write is still held";
    EXPECT_EQ(hold.stops, 1);
    keep(4);
    EXPECT_EQ(write(4), "");
    EXPECT_EQ(finding.dump, std::nullopt);
    EXPECT_EQ(hold.held(), 0);
}

TEST_F(DumpsOfARun, WhatStopsTheProgramGoesOnHolding) {
    options.break_at = true;
    keep(1);
    EXPECT_EQ(write(1), "");
    EXPECT_FALSE(dumps.active());
    EXPECT_EQ(hold.stops, 0);
}

TEST_F(DumpsOfARun, TheFileOfAnEarlierProcessStays) {
    std::filesystem::create_directories(scratch.file("there/42"));
    std::ofstream(scratch.file("there/42/numsan-42-1.safetensors")) << "old";
    keep(1);
    EXPECT_EQ(write(1), "");
    EXPECT_EQ(finding.dump, scratch.file("there/42/numsan-42-20261124T090000Z-1.safetensors"));
    EXPECT_EQ(testing::file_text(scratch.file("there/42/numsan-42-1.safetensors")), "old");
}

TEST_F(DumpsOfARun, OneLineWhereItCannotBeWrittenAndNoMoreAttempts) {
    options.dump_findings = 5;
    std::ofstream(scratch.file("there")) << "no folder";
    keep(1);
    keep(2);
    EXPECT_THAT(write(1), HasSubstr("no dump of finding F1 (aten::div): cannot make the folder"));
    EXPECT_EQ(finding.dump, std::nullopt);
    EXPECT_FALSE(dumps.active());
    EXPECT_EQ(write(2), "");
    EXPECT_EQ(hold.held(), 0);
}

TEST_F(DumpsOfARun, APlaceThatGivesBirthInEveryStepLeavesRoomForOthers) {
    keep(1, kLogarithm, 7);
    for (BirthId birth = 2; birth < 500; ++birth) keep(birth);
    EXPECT_EQ(hold.held(), 5);
    EXPECT_EQ(write(1), "");
    EXPECT_NE(finding.dump, std::nullopt);
}

TEST_F(DumpsOfARun, TheOldestGivesWayToWhatIsTooLarge) {
    keep(1, kSquareRoot, 1, 900);
    keep(2, kSquareRoot, 2, 900);
    keep(3, kSquareRoot, 3, 900);
    EXPECT_EQ(hold.held(), 2) << "twice dump_limit at most";
    EXPECT_THAT(write(1), HasSubstr("too many or too large ones were kept after it"));
    EXPECT_TRUE(dumps.active()) << "the next finding may have one";
    EXPECT_EQ(write(2), "");
}

TEST_F(DumpsOfARun, WhatWasNeverHeldIsSaid) {
    EXPECT_THAT(write(8), HasSubstr("it was not held when it ran"));
    finding.op = "external";
    EXPECT_THAT(*dumps.write(finding, 8, run), HasSubstr("no operator was seen to make the value"));
}

TEST_F(DumpsOfARun, AForkedChildCountsItsOwn) {
    options.dump_findings = 2;
    keep(1);
    keep(2);
    EXPECT_EQ(write(1), "");
    dumps.begin_child();
    run.pid = 43;
    EXPECT_EQ(write(2), "");
    EXPECT_EQ(finding.dump, scratch.file("there/43/numsan-43-1.safetensors"));
}

TEST(Dumps, AreNotWantedWithoutTheOption) {
    const Options options;
    MadeUpHold hold;
    Dumps dumps(options);
    dumps.use(hold.api());
    EXPECT_FALSE(dumps.active());
}

}  // namespace
}  // namespace numsan
