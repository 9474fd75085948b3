#include "host/kernels/kernel_manifest.h"

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
)";

TEST(KernelManifest, SaysWhatKernelsAreGiven) {
    std::vector<std::string> complaints;
    const KernelManifest manifest = KernelManifest::parse(kTwo, "kernels.toml", complaints);
    EXPECT_THAT(complaints, IsEmpty());
    ASSERT_EQ(manifest.size(), 2u);
    const auto* const update = manifest.find("fused_update", "");
    ASSERT_NE(update, nullptr);
    ASSERT_THAT(*update, SizeIs(3));
    EXPECT_EQ((*update)[0].use, KernelParameter::Use::Writes);
    EXPECT_EQ((*update)[0].count, 256);
    EXPECT_EQ((*update)[1].use, KernelParameter::Use::Reads);
    EXPECT_EQ((*update)[1].argument, 2);
    EXPECT_EQ((*update)[1].dtype, DType::BFloat16);
    EXPECT_EQ((*update)[1].count, 0);
    EXPECT_EQ((*update)[2].offset, 8);
    EXPECT_THAT(*manifest.find("_ZN2ns6opaqueEPv", "ns::opaque"), IsEmpty()) << "one that writes no numbers";
    EXPECT_EQ(manifest.find("other", "other"), nullptr);
}

TEST(KernelManifest, ComplaintsNameThePlaceAndWhatWasExpected) {
    EXPECT_THAT(complaints_about("[[kernel]\n"), ElementsAre(StartsWith("kernels: kernels.toml:1:")));
    EXPECT_THAT(
        complaints_about(""),
        ElementsAre("kernels: kernels.toml:1:1: no kernel is described: expected tables [[kernel]]; all kernels "
                    "are left out"));
    EXPECT_THAT(complaints_about("kernel = 3\n"),
                ElementsAre("kernels: kernels.toml:1:10: 'kernel' is no list of tables: expected [[kernel]]; all "
                            "kernels are left out"));
    EXPECT_THAT(complaints_about("kernels = []\n"),
                ElementsAre("kernels: kernels.toml:1:1: unknown key 'kernels': expected one of kernel; all kernels are "
                            "left out"));
    EXPECT_THAT(complaints_about("[[kernel]]\nname = \"f\"\n"),
                ElementsAre("kernels: kernels.toml:2:1: unknown key 'name': expected one of symbol, writes, reads; the "
                            "kernel is left out"));
    EXPECT_THAT(complaints_about("[[kernel]]\nwrites = []\n"),
                ElementsAre("kernels: kernels.toml:1:1: a kernel has no 'symbol', its name; the kernel is left out"));
    EXPECT_THAT(complaints_about("[[kernel]]\nsymbol = \"f\"\nwrites = 0\n"),
                ElementsAre("kernels: kernels.toml:3:10: 'writes' is no list: expected [{ argument = 0, type = "
                            "\"float32\" }]; the kernel is left out"));
    const std::string buffer = "[[kernel]]\nsymbol = \"f\"\nwrites = [";
    EXPECT_THAT(complaints_about(buffer + "0]\n"),
                ElementsAre("kernels: kernels.toml:3:11: a buffer is no table: expected { argument = 0, type = "
                            "\"float32\" }; the kernel is left out"));
    EXPECT_THAT(complaints_about(buffer + "{ type = \"float32\" }]\n"),
                ElementsAre("kernels: kernels.toml:3:11: a buffer has no 'argument': its place among those of the "
                            "kernel, from 0; the kernel is left out"));
    EXPECT_THAT(
        complaints_about(buffer + "{ argument = -1, type = \"float32\" }]\n"),
        ElementsAre("kernels: kernels.toml:3:24: 'argument' is no whole number of 0 to 4095; the kernel is left "
                    "out"));
    EXPECT_THAT(complaints_about(buffer + "{ argument = 0, type = \"int32\" }]\n"),
                ElementsAre(StartsWith("kernels: kernels.toml:3:11: a buffer has no 'type' that is one of float64, "
                                       "float32, ")));
    EXPECT_THAT(complaints_about(buffer + "{ argument = 0, type = \"float32\", count = 1.5 }]\n"),
                ElementsAre(StartsWith("kernels: kernels.toml:3:53: 'count' is no whole number of 1 to ")));
}

TEST(KernelManifest, OneBadKernelLeavesTheOthers) {
    std::vector<std::string> complaints;
    const std::string bad = "[[kernel]]\nsymbol = 3\n";
    EXPECT_EQ(KernelManifest::parse(bad + kTwo, "kernels.toml", complaints).size(), 2u);
    EXPECT_THAT(complaints, SizeIs(1));
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
                ElementsAre("kernels: '/nowhere/kernels.toml' cannot be read: No such file or directory; no kernel is "
                            "described",
                            "kernels: '/' is not a regular file; no kernel is described",
                            "kernels: '" + pipe + "' is not a regular file; no kernel is described"));
    remove(pipe.c_str());
    const std::string path = testing::TempDir() + "kernels.toml";
    std::ofstream(path) << kTwo;
    EXPECT_EQ(KernelManifest::read(path, complaints).size(), 2u);
    std::ofstream(path) << std::string(KernelManifest::kLargestFile + 1, ' ');
    EXPECT_EQ(KernelManifest::read(path, complaints).size(), 0u);
    EXPECT_EQ(complaints.back(), "kernels: '" + path + "' is larger than 1 MiB; no kernel is described");
    remove(path.c_str());
}

}  // namespace
}  // namespace numsan
