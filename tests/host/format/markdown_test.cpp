#include "host/format/markdown.h"

#include <gtest/gtest.h>

namespace numsan::markdown {
namespace {

TEST(Markdown, NamesInBackquotesStayCodeAndTheRestIsText) {
    EXPECT_EQ(text("`aten::log` of *x* in 2"), "`aten::log` of \\*x\\* in 2");
    EXPECT_EQ(text("one ` alone"), "one \\` alone");
    EXPECT_EQ(text("``"), "\\`\\`");
    EXPECT_EQ(text("@team <b>"), "@&#8203;team \\<b\\>");
}

TEST(Markdown, CodeIsDelimitedByMoreBackquotesThanItHas) {
    EXPECT_EQ(code(""), "");
    EXPECT_EQ(code("a|b"), "`a\\|b`");
    EXPECT_EQ(code("a``b"), "```a``b```");
    EXPECT_EQ(code("`a"), "`` `a ``");
}

TEST(Markdown, AFenceIsLongerThanAnyInIt) {
    EXPECT_EQ(fenced("a\n````\nb", "text"), "`````text\na\n````\nb\n`````\n");
    EXPECT_EQ(fenced("a\n", ""), "```\na\n```\n");
}

TEST(Markdown, MarksMeanNothingInHtml) { EXPECT_EQ(in_html("a_b<@c"), "a_b&lt;@&#8203;c"); }

}  // namespace
}  // namespace numsan::markdown
