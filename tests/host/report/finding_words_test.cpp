// Phrases of a finding, of documents that may be damaged.
#include "host/report/finding_words.h"

#include <gtest/gtest.h>

namespace numsan {
namespace {

using fields::Json;

TEST(FindingWords, PlacesAreRelativeToTheFolderOfTheRun) {
    EXPECT_EQ(below("/job/a.py", "/job"), "a.py");
    EXPECT_EQ(below("/jobs/a.py", "/job"), "/jobs/a.py");
    EXPECT_EQ(below("/a.py", "/"), "/a.py");
    EXPECT_EQ(below("/a.py", ""), "/a.py");
    EXPECT_EQ(shown_place({{"file", "/job/a.py"}, {"line", 3}}, "/job"), "a.py:3");
    EXPECT_EQ(shown_place(nullptr, "/job"), "");
    EXPECT_EQ(shown_place("x", "/job"), "");
}

TEST(FindingWords, StateIsBadSinceTheFirstOfItsKinds) {
    const Json finding = {{"contaminated",
                           {{{"kind", "parameter"}, {"since_step", 7}},
                            {{"kind", "parameter"}, {"since_step", 5}},
                            {{"kind", "buffer"}, {"since_step", 6}},
                            {{"kind", "gradient"}, {"since_step", 2}}}}};
    EXPECT_EQ(bad_since(finding, "parameter"), 5);
    EXPECT_EQ(bad_since(finding, "optimizer_state"), std::nullopt);
    EXPECT_EQ(state_bad_since(finding), 5) << "a gradient is no state of a checkpoint";
    EXPECT_EQ(state_bad_since(Json::object()), std::nullopt);
}

TEST(FindingWords, OfDocumentsThatAreNone) {
    for (const Json& odd : {Json(nullptr), Json(7), Json::array(), Json::object(), Json("x")}) {
        EXPECT_EQ(type_text(odd), "[]");
        EXPECT_EQ(state_text(odd), "no elements");
        EXPECT_FALSE(any_bad(odd));
        EXPECT_EQ(contamination_text(odd), "");
        EXPECT_FALSE(when_text(odd).empty());
    }
}

}  // namespace
}  // namespace numsan
