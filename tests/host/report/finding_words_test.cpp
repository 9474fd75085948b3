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

TEST(FindingWords, WhereAValueWasSentAndCameFrom) {
    const Json sent = {
        {"op", "c10d::allreduce_"}, {"group", "0"}, {"description", "default_pg"}, {"number", 12}, {"peer", nullptr},
        {"to", "0-2, 4"},           {"step", 1200}};
    Json finding = {{"sent", {sent}}};
    EXPECT_EQ(sent_text(finding), "to ranks 0-2, 4 by `c10d::allreduce_` 12 of the group default_pg in step 1 200");
    finding["sent"].push_back(sent);
    EXPECT_EQ(
        sent_text(finding),
        "to ranks 0-2, 4 by `c10d::allreduce_` 12 of the group default_pg in step 1 200, and by 1 operation after "
        "it");
    Json received = {{"op", "c10d::recv_"}, {"group", "5"}, {"description", ""}, {"number", 3},
                     {"peer", 1},           {"from", "9"},  {"tag", 7}};
    EXPECT_EQ(received_text({{"received", received}}), "from rank 9 by `c10d::recv_` 3 with tag 7 of the group 5");
    received.update({{"from", nullptr}, {"number", nullptr}, {"tag", 0}});
    EXPECT_EQ(received_text({{"received", received}}), "from rank 1 of the group by `c10d::recv_` of the group 5");
    received["peer"] = nullptr;
    EXPECT_EQ(received_text({{"received", received}}),
              "from one or more of the other ranks of the group by `c10d::recv_` of the group 5");
    received["from"] = "0-3";
    EXPECT_EQ(received_text({{"received", received}}), "from one or more of ranks 0-3 by `c10d::recv_` of the group 5");
}

TEST(FindingWords, OfDocumentsThatAreNone) {
    for (const Json& odd : {Json(nullptr), Json(7), Json::array(), Json::object(), Json("x")}) {
        EXPECT_EQ(type_text(odd), "[]");
        EXPECT_EQ(state_text(odd), "no elements");
        EXPECT_FALSE(any_bad(odd));
        EXPECT_EQ(contamination_text(odd), "");
        EXPECT_FALSE(when_text(odd).empty());
        EXPECT_EQ(sent_text(odd), "");
        EXPECT_EQ(received_text(odd), "");
    }
}

}  // namespace
}  // namespace numsan
