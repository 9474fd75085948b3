#include "host/format/formats.h"

#include <gtest/gtest.h>

#include <set>

namespace numsan {
namespace {

TEST(Formats, EachNameIsThereOnceAndIsFoundByItsCommands) {
    std::set<std::string> names;
    for (const FormatInfo& row : kFormats) {
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        EXPECT_EQ(format_of("report", row.name), row.value);
    }
    EXPECT_EQ(format_of("diff", "sarif"), std::nullopt);
    EXPECT_EQ(format_of("rep", "text"), std::nullopt);
    EXPECT_EQ(formats_of("explain"), std::vector<std::string>{});
}

TEST(Formats, AnUnknownOneIsToldWithTheNearestThatTheCommandKnows) {
    EXPECT_EQ(unknown_format("diff", "markdwon"),
              "format 'markdwon': expected text, json or markdown; did you mean 'markdown'?");
}

}  // namespace
}  // namespace numsan
