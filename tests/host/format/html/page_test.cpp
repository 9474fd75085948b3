// Pages: what is filled into them is text.
#include "host/format/html/page.h"

#include <gtest/gtest.h>

namespace numsan::html {
namespace {

TEST(HtmlPage, NamesInBackquotesAreCode) {
    EXPECT_EQ(words_html("a <b> `x < y` & \"c\""), "a &lt;b&gt; <code>x &lt; y</code> &amp; &quot;c&quot;");
    EXPECT_EQ(words_html("one ` alone"), "one ` alone");
    EXPECT_EQ(words_html(""), "");
}

TEST(HtmlPage, EmptyTextIsNotThere) {
    Data data;
    put(data, "a", "");
    put(data, "b", "x");
    EXPECT_TRUE(data.get("a")->is_false());
    EXPECT_EQ(data.get("b")->string_value(), "x");
}

TEST(HtmlPage, IsOneFileAndEscapesWhatIsFilledIn) {
    Data data;
    put(data, "title", "</title><script>x</script>");
    put(data, "heading", "{{title}}");
    const std::string made = page(Body::History, data);
    EXPECT_NE(made.find("<title>&lt;/title&gt;&lt;script&gt;x"), std::string::npos);
    EXPECT_NE(made.find("<h1>{{title}}</h1>"), std::string::npos) << "a template in a value is a text";
    EXPECT_NE(made.find("Chart.js v3.9"), std::string::npos);
    for (const char* outside : {"src=", "@import", "url(", "<link rel=\"stylesheet"})
        EXPECT_EQ(made.find(outside), std::string::npos) << outside;
    EXPECT_NE(made.find("default-src 'none'"), std::string::npos);
    EXPECT_TRUE(made.ends_with("</html>\n"));
}

}  // namespace
}  // namespace numsan::html
