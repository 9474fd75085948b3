#include "host/kernels/kernel_manifest.h"
#include "host/options/user_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

namespace numsan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

std::vector<std::string> complaints_about(std::string_view text) {
    std::vector<std::string> complaints;
    KernelManifest::parse(text, "kernels.toml", complaints);
    return complaints;
}

constexpr const char* kTwo = R"(
# what nvcc does not say
[[kernel]]
symbol = "fused_update"
writes = [{ argument = 0, type = "float32", count = 256 }]
reads = [{ argument = 2, type = "bfloat16" }, { argument = 3, type = "float16", offset = 8 }]

[[kernel]]
symbol = "ns::opaque"
writes = []
)";

TEST(KernelManifest, SaysWhatKernelsAreGiven) {
    std::vector<std::string> complaints;
    const KernelManifest manifest = KernelManifest::parse(kTwo, "kernels.toml", complaints);
    EXPECT_THAT(complaints, IsEmpty());
    ASSERT_EQ(manifest.size(), 2u);
    const auto* const update = manifest.find("fused_update");
    ASSERT_NE(update, nullptr);
    ASSERT_THAT(*update, SizeIs(3));
    EXPECT_EQ((*update)[0].use, KernelParameter::Use::Writes);
    EXPECT_EQ((*update)[0].count, 256);
    EXPECT_EQ((*update)[1].use, KernelParameter::Use::Reads);
    EXPECT_EQ((*update)[1].argument, 2);
    EXPECT_EQ((*update)[1].dtype, DType::BFloat16);
    EXPECT_EQ((*update)[1].count, 0);
    EXPECT_EQ((*update)[2].offset, 8);
    EXPECT_THAT(*manifest.find("ns::opaque"), IsEmpty()) << "one that writes no numbers";
    EXPECT_EQ(manifest.find("other"), nullptr);
}

/// Of one kernel that is left out.
void expect_complaint(const std::string& text, const std::string& said) {
    EXPECT_THAT(complaints_about(text), ElementsAre("kernels: kernels.toml:" + said + "; the kernel is left out"))
        << text;
}

TEST(KernelManifest, ComplaintsNameThePlaceAndWhatWasExpected) {
    EXPECT_THAT(complaints_about("# nothing\n"),
                ElementsAre("kernels: kernels.toml: no kernel is described: expected [[kernel]]"));
    expect_complaint("[[kernel]\n", "2:1: expected [[kernel]]");
    expect_complaint("kernel = 3\n", "1:1: expected [[kernel]]");
    expect_complaint("[[kernels]]\n", "1:3: expected [[kernel]]");
    expect_complaint("[[kernel]]\nname = \"f\"\n", "2:1: unknown key 'name': expected one of symbol, writes, reads");
    expect_complaint("[[kernel]]\nwrites = []\n", "1:1: a kernel has no 'symbol', its name");
    expect_complaint("[[kernel]]\nsymbol = 3\n", "2:10: 'symbol' is no text, \"name\"");
    expect_complaint("[[kernel]]\nsymbol \"f\"\n", "2:8: expected =");
    expect_complaint("[[kernel]]\n\"symbol\" = \"f\"\n", "2:1: expected one of symbol, writes, reads");
    expect_complaint("[[kernel]]\nsymbol = \"f\" writes = []\n", "2:14: expected a new line");
    expect_complaint("[[kernel]]\nsymbol = \"f\n", "2:10: a text has no end on its line");
    expect_complaint("[[kernel]]\nsymbol = \"\\n\"\n",
                     "2:10: of what a backslash may stand before only \\\" and \\\\ are known");
    expect_complaint("[[kernel]]\nsymbol = \"\x1b[31m\"\n", "2:10: byte 0x1b in a text");
    expect_complaint("[[kernel]]\n\xef = 1\n", "2:1: byte 0xef begins no word");
    expect_complaint("[[kernel]]\nsymbol = \"f\"\nwrites = 0\n",
                     "3:10: expected a list, [{ argument = 0, type = \"float32\" }]");
    const std::string list = "[[kernel]]\nsymbol = \"f\"\nwrites = [";
    expect_complaint(list + "0]\n", "3:11: expected a buffer, { argument = 0, type = \"float32\" }");
    expect_complaint(list + "{ type = \"float32\" }]\n",
                     "3:11: a buffer has no 'argument': its place among those of the kernel, from 0");
    expect_complaint(list + "{ argument = -1 }]\n", "3:24: 'argument' is no whole number of 0 to 4095");
    expect_complaint(list + "{ argument = 0, type = \"float32\", count = 1.5 }]\n",
                     "3:53: 'count' is no whole number of 1 to 576460752303423487");
    expect_complaint(list + "{ argument = 0, size = 1 }]\n",
                     "3:27: unknown key 'size': expected one of argument, type, count, offset");
    expect_complaint(list + "{ argument = 0 ]\n", "3:26: expected , or }");
    expect_complaint(list + "{ argument = 0, type = \"float32\" } }\n", "3:46: expected , or ]");
    expect_complaint(list + "]\nwrites = []\n", "4:1: 'writes' stands twice");
    expect_complaint(list + "{ argument = 0, argument = 1 }]\n", "3:27: 'argument' stands twice");
    expect_complaint("[[kernel]]\nsymbol = \"f\"\n",
                     "1:1: a kernel has neither 'writes' nor 'reads': `writes = []` for one that writes no numbers");
    EXPECT_THAT(complaints_about(list + "]\n[[kernel]]\nsymbol = \"f\"\nreads = []\n"),
                ElementsAre("kernels: kernels.toml:4:1: a kernel 'f' was described before; the kernel is left out"));
    EXPECT_THAT(complaints_about("[[kernel]]\nsymbol = \"f\"\n[[kernel.writes]]\nargument = 0\n"),
                ElementsAre(StartsWith("kernels: kernels.toml:1:1: a kernel has neither 'writes' nor 'reads'"),
                            "kernels: kernels.toml:3:3: expected [[kernel]]; the kernel is left out"));
    std::vector<std::string> complaints;
    EXPECT_EQ(KernelManifest::parse(list + "]\n[other]\n", "kernels.toml", complaints).size(), 1u)
        << "what follows a kernel does not undo it";
    EXPECT_THAT(complaints, SizeIs(1));
    EXPECT_THAT(complaints_about(list + "{ argument = 0, type = \"int32\" }]\n"),
                ElementsAre(StartsWith("kernels: kernels.toml:3:34: 'type' is none of float64, float32, float16, ")));
}

TEST(KernelManifest, TextsAndLists) {
    std::vector<std::string> complaints;
    const KernelManifest manifest = KernelManifest::parse(
        "\xef\xbb\xbf[[kernel]]\r\nsymbol = 'a\\b'  # literal\r\nreads = []\r\n  [[kernel]]\nsymbol = "
        "\"a\\\"b\\\\\"\nwrites = [\n  # one\n"
        "  { argument = 0, type = 'float32', },\n]",
        "kernels.toml", complaints);
    EXPECT_THAT(complaints, IsEmpty());
    EXPECT_THAT(manifest.symbols(), ElementsAre("a\"b\\", "a\\b"));
    EXPECT_THAT(*manifest.find("a\"b\\"), SizeIs(1));
}

TEST(KernelManifest, ManyBadKernelsAreCounted) {
    std::string text;
    for (int i = 0; i < 25; ++i) text += "[[kernel]]\nsymbol =\n";
    const std::vector<std::string> complaints = complaints_about(text);
    ASSERT_THAT(complaints, SizeIs(21));
    EXPECT_EQ(complaints.front(), "kernels: kernels.toml:3:1: 'symbol' is no text, \"name\"; the kernel is left out");
    EXPECT_EQ(complaints.back(), "kernels: kernels.toml: 5 further kernels are left out");
}

TEST(KernelManifest, OneBadKernelLeavesTheOthers) {
    std::vector<std::string> complaints;
    const std::string bad = "  [[kernel]]\n  symbol = 3\n  ";
    EXPECT_EQ(KernelManifest::parse(bad + kTwo, "kernels.toml", complaints).size(), 2u);
    EXPECT_EQ(
        KernelManifest::parse(bad + "[[kernel]]\n  symbol = 'f'\n  reads = []\n", "kernels.toml", complaints).size(),
        1u);
    EXPECT_THAT(complaints, SizeIs(2));
}

TEST(KernelManifest, AFileThatCannotBeReadDescribesNone) {
    std::vector<std::string> complaints;
    EXPECT_EQ(KernelManifest::read("", complaints).size(), 0u);
    EXPECT_THAT(complaints, IsEmpty());
    KernelManifest::read("/nowhere/kernels.toml", complaints);
    KernelManifest::read("/", complaints);
    const std::string pipe = testing::TempDir() + "kernels.pipe";
    mkfifo(pipe.c_str(), 0600);
    KernelManifest::read(pipe, complaints);
    EXPECT_THAT(complaints,
                ElementsAre("kernels: '/nowhere/kernels.toml' was not read: No such file or directory; no kernel is "
                            "described",
                            "kernels: '/' is not a regular file; no kernel is described",
                            "kernels: '" + pipe + "' is not a regular file; no kernel is described"));
    remove(pipe.c_str());
    const std::string path = testing::TempDir() + "kernels.toml";
    std::ofstream(path) << kTwo;
    EXPECT_EQ(KernelManifest::read(path, complaints).size(), 2u);
    std::ofstream(path) << std::string(UserFile::kLargest + 1, ' ');
    EXPECT_EQ(KernelManifest::read(path, complaints).size(), 0u);
    EXPECT_EQ(complaints.back(), "kernels: '" + path + "' is larger than 1 MiB; no kernel is described");
    remove(path.c_str());
}

}  // namespace
}  // namespace numsan
