#include "host/format/xml.h"

#include <gtest/gtest.h>

namespace numsan {
namespace {

TEST(XmlText, MarksBecomeEntities) { EXPECT_EQ(xml_text("a<b>&\"]]>'"), "a&lt;b&gt;&amp;&quot;]]&gt;'"); }

TEST(XmlText, WhatXmlCannotHoldIsReplacedAndNothingElse) {
    EXPECT_EQ(xml_text(std::string("a\0b\x1b\r\n\t", 7)), "a\ufffdb\ufffd\ufffd\n\t");
    EXPECT_EQ(xml_text("\ufffe\uffff\ufffd漢\u0085"), "\ufffd\ufffd\ufffd漢\u0085");
}

}  // namespace
}  // namespace numsan
