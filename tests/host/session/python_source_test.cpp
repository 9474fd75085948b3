// Statements of Python source: lines, indentation, text; and which files are read.
#include "host/session/python_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>

namespace numsan {
namespace {

TEST(PythonSource, OneStatementMayTakeManyLines) {
    const PythonSource source(
        "a = 1  # a comment (\n"
        "\n"
        "b = f(1,  # {\n"
        "      2)\n"
        "c = a + \\\n"
        "    b\n"
        "if (a and\n"
        "        b):\n"
        "\tc = '# no comment (' + \"it's\" + r'\\''\n"
        "d = '''three\n"
        "lines (\n"
        "''' ; e = 1\n"
        "def f():\n"
        "    return f\"{a['x']}\"");
    const auto& all = source.statements();
    ASSERT_EQ(all.size(), 8u);
    const auto is = [&](size_t i, int first, int last, int indent, const char* text) {
        EXPECT_EQ(all[i].first, first) << i;
        EXPECT_EQ(all[i].last, last) << i;
        EXPECT_EQ(all[i].indent, indent) << i;
        EXPECT_EQ(all[i].text, text) << i;
    };
    is(0, 1, 1, 0, "a = 1");
    is(1, 3, 4, 0, "b = f(1, 2)");
    is(2, 5, 6, 0, "c = a + b");
    is(3, 7, 8, 0, "if (a and b):");
    is(4, 9, 9, 8, "c = '' + \"\" + r''");
    is(5, 10, 12, 0, "d = '' ; e = 1");
    is(6, 13, 13, 0, "def f():");
    is(7, 14, 14, 4, "return f\"\"");
    EXPECT_EQ(source.at(6), 2u);
    EXPECT_EQ(source.at(2), PythonSource::kNone) << "an empty line";
    EXPECT_EQ(source.at(0), PythonSource::kNone);
    EXPECT_EQ(source.at(99), PythonSource::kNone);
    EXPECT_EQ(source.block(6).begin, 7u);
    EXPECT_EQ(source.block(6).end, 8u);
    EXPECT_TRUE(source.block(2).empty());
    EXPECT_EQ(source.head_of(7), 6u);
    EXPECT_EQ(source.head_of(6), PythonSource::kNone);
}

TEST(PythonSource, WhatIsNoPythonHasNoStatements) {
    for (const char* text :
         {"", "\n\n# comment\n", "f(1,\nx = 2\n", "a = 'open\nb = 2\n", "a = '''open\n", "a = 1)\n"}) {
        EXPECT_TRUE(PythonSource(text).statements().empty()) << text;
    }
    EXPECT_EQ(PythonSource("a = 1\\").statements().size(), 1u) << "the end of a file behind a backslash";
    EXPECT_EQ(PythonSource("a = 1\r\nb = 2\r\n").statements().size(), 2u);
    EXPECT_EQ(PythonSource("a = 'x\\\r\ny'\r\nb = 2\r\n").statements().size(), 2u);
}

TEST(PythonSource, Keywords) {
    const PythonSource source("if a: b\nif(a): b\niffy(a)\nassert_equal(a)\nassert(a)\n");
    const auto& all = source.statements();
    EXPECT_TRUE(all[0].starts_with("if"));
    EXPECT_TRUE(all[1].starts_with("if"));
    EXPECT_FALSE(all[2].starts_with("if"));
    EXPECT_FALSE(all[3].starts_with("assert"));
    EXPECT_TRUE(all[4].starts_with("assert"));
}

TEST(PythonSources, OnlyRegularFilesOfAReasonableSizeThatNothingHasChanged) {
    const std::string folder = testing::TempDir() + "numsan_sources_" + std::to_string(getpid());
    ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
    const std::string small = folder + "/small.py", large = folder + "/large.py", pipe = folder + "/pipe.py";
    std::ofstream(small) << "a = 1\n";
    std::ofstream(large) << "a = 1\n" << std::string((1 << 20) + 1, '#');
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    PythonSources now(std::time(nullptr) + 60);
    const auto found = now.find(small);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found, now.find(small)) << "it is read once";
    EXPECT_EQ(now.find(large), nullptr);
    EXPECT_EQ(now.find(pipe), nullptr) << "and does not wait for a writer";
    EXPECT_EQ(now.find(folder), nullptr);
    EXPECT_EQ(now.find(folder + "/none.py"), nullptr);
    PythonSources before(std::time(nullptr) - 3600);
    EXPECT_EQ(before.find(small), nullptr);
    for (const std::string& file : {small, large, pipe}) std::remove(file.c_str());
    rmdir(folder.c_str());
}

}  // namespace
}  // namespace numsan
