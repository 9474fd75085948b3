// NUMSAN_OPTIONS: what is accepted, what is complained about, and that a complaint changes nothing.
#include "host/options/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/options/nearest.h"

namespace numsan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::string> complaints_of(const char* text, Options& options) {
    std::vector<std::string> complaints;
    parse(text, options, complaints);
    return complaints;
}

TEST(Options, DefaultsAreThoseOfTheContract) {
    const Options options;
    EXPECT_EQ(options.tier, Tier::Auto);
    EXPECT_EQ(options.report, "numsan-%p.json");
    EXPECT_EQ(options.exitcode, 66);
    EXPECT_TRUE(options.underflow);
    EXPECT_EQ(options.headroom, 0.5);
    EXPECT_THAT(non_default(options), IsEmpty());
}

TEST(Options, EveryDefaultIsAcceptedAsAValue) {
    for (const OptionRow& row : option_rows()) {
        Options options;
        EXPECT_EQ(set_option(options, row.key, row.initial), std::nullopt) << row.key;
        EXPECT_THAT(non_default(options), IsEmpty()) << row.key;
    }
}

TEST(Options, LastOfEqualKeysWinsAndEmptyPiecesAreNothing) {
    Options options;
    EXPECT_THAT(complaints_of("::tier=off:break=1:tier=full:", options), IsEmpty());
    EXPECT_THAT(non_default(options), ElementsAre(Pair("break", "1"), Pair("tier", "full")));
}

TEST(Options, BadValueNamesKeyValueExpectedAndNearestAndKeepsTheDefault) {
    Options options;
    EXPECT_THAT(complaints_of("tier=fulll", options),
                ElementsAre("option 'tier': bad value 'fulll': expected one of auto, sentinel, boundary, full, off; "
                            "did you mean 'full'?; 'auto' is used"));
    EXPECT_EQ(options.tier, Tier::Auto);
}

TEST(Options, UnknownKeyNamesTheNearest) {
    Options options;
    EXPECT_THAT(complaints_of("teir=full", options), ElementsAre(HasSubstr("did you mean 'tier'?")));
}

TEST(Options, BadNumbersAndSwitchesAreRefused) {
    for (const char* text :
         {"budget=", "budget=nan", "budget=1e400", "budget=5x", "headroom=2", "exitcode=256", "exitcode=6.5",
          "verbosity=-1", "halt=yes", "halt", "report=", "=", "max_findings=99999999999999999999",
          "dump_limit=", "dump_limit=0", "dump_limit=-1K", "dump_limit=1X", "dump_limit=K", "dump_limit=1e30T"}) {
        Options options;
        EXPECT_EQ(complaints_of(text, options).size(), 1u) << text;
        EXPECT_THAT(non_default(options), IsEmpty()) << text;
    }
}

TEST(Options, BytesAreSaidInPowersOf1024) {
    EXPECT_EQ(bytes_of_text("512"), 512);
    EXPECT_EQ(bytes_of_text("64K"), 65536);
    EXPECT_EQ(bytes_of_text("1.5M"), 1572864);
    EXPECT_EQ(bytes_of_text("2T"), int64_t(1) << 41);
    Options options;
    EXPECT_THAT(complaints_of("dump_limit=100M", options), IsEmpty());
    EXPECT_THAT(non_default(options), ElementsAre(Pair("dump_limit", "100M")));
    EXPECT_EQ(text_of_bytes(1000), "1000");
    EXPECT_THAT(complaints_of("dump_limit=1GB", options),
                ElementsAre(HasSubstr("bad value '1GB': expected bytes as 512, 64K, 100M, 1G")));
}

TEST(Options, ComplaintsAreOneLine) {
    Options options;
    for (const std::string& line : complaints_of("ti\ner=\x1b[31m:tier=a\nb:log=\x1b[2J:log=", options)) {
        EXPECT_EQ(line.find_first_of("\n\x1b"), std::string::npos);
    }
}

TEST(Options, PathEscapes) {
    const PathFacts facts{42, 3, "a/b", "2026-11-21T09:00:00Z"};
    EXPECT_EQ(expand_path("r-%p-%r-%h-%t-%%-%x%", facts), "r-42-3-a_b-20261121T090000Z-%-%x%");
}

TEST(Nearest, CountsASwapAsOne) {
    EXPECT_EQ(edit_distance("teir", "tier"), 1u);
    EXPECT_EQ(nearest("x", {}), "");
}

}  // namespace
}  // namespace numsan
