// Text from outside on one line: what is replaced, what is cut, what is left alone.
#include "host/options/one_line.h"

#include <gtest/gtest.h>

namespace numsan {
namespace {

TEST(OneLine, ReplacesControlCharacters) {
    EXPECT_EQ(one_line("a\nb\x1b[2J\x7f", 100), "a?b?[2J?");
    EXPECT_EQ(one_line("\xc2\x9b"
                       "31m\xc2\x80\xc2\x9f",
                       100),
              "?31m??")
        << "U+009B begins a sequence as ESC [ does";
    EXPECT_EQ(one_line(std::string_view("a\0b", 3), 100), "a?b");
}

TEST(OneLine, LeavesOtherTextAlone) {
    EXPECT_EQ(one_line("", 100), "");
    EXPECT_EQ(one_line("\xc2\xa0\xc3\xa4\xe2\x82\xac", 100), "\xc2\xa0\xc3\xa4\xe2\x82\xac");
    EXPECT_EQ(one_line("\xc2", 100), "\xc2");
}

TEST(OneLine, CutsBetweenCharacters) {
    EXPECT_EQ(one_line("abcd", 4), "abcd");
    EXPECT_EQ(one_line("abcde", 4), "abcd...");
    EXPECT_EQ(one_line("abc\xe2\x82\xac", 5), "abc...");
    EXPECT_EQ(one_line("abc\xc2\x9b", 4), "abc...");
    EXPECT_EQ(one_line("\x80\x80\x80\x80\x80\x80", 4).size(), 4u) << "what is not UTF-8 is cut all the same";
}

}  // namespace
}  // namespace numsan
