// write_atomically: the old file or the new one, and nothing left behind.
#include "host/report/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/support/builders.h"

namespace numsan {
namespace {

using testing::file_text;
using testing::ScratchFolder;

TEST(AtomicFile, ReplacesAndLeavesNoTemporaryFile) {
    const ScratchFolder scratch;
    EXPECT_EQ(write_atomically(scratch.file("r.json"), "old"), std::nullopt);
    EXPECT_EQ(write_atomically(scratch.file("r.json"), "new"), std::nullopt);
    EXPECT_EQ(file_text(scratch.file("r.json")), "new");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 1);
}

TEST(AtomicFile, KeepsTheOldFileWhenNothingMoreFits) {
    const ScratchFolder scratch;
    ASSERT_EQ(write_atomically(scratch.file("r.json"), "old"), std::nullopt);
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit tight{4, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &tight);  // SIGXFSZ would end this process if it got through
    const auto error = write_atomically(scratch.file("r.json"), "longer than four bytes");
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_EQ(error, "cannot write " + scratch.file("r.json") + ": File too large");
    EXPECT_EQ(file_text(scratch.file("r.json")), "old");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 1);
}

TEST(AtomicFile, SaysWhatIsWrongWithThePath) {
    const ScratchFolder scratch;
    EXPECT_NE(write_atomically(scratch.file("no/r.json"), "x")->find("is missing"), std::string::npos);
    EXPECT_NE(write_atomically(scratch.path().string(), "x")->find("Is a directory"), std::string::npos);
    EXPECT_NE(write_atomically("/dev/full", "x")->find("No space left"), std::string::npos);
}

TEST(AtomicFile, FollowsALinkInsteadOfReplacingIt) {
    const ScratchFolder scratch;
    ASSERT_EQ(write_atomically(scratch.file("target"), "old"), std::nullopt);
    std::filesystem::create_symlink(scratch.file("target"), scratch.file("link"));
    EXPECT_EQ(write_atomically(scratch.file("link"), "new"), std::nullopt);
    EXPECT_TRUE(std::filesystem::is_symlink(scratch.file("link")));
    EXPECT_EQ(file_text(scratch.file("target")), "new");
}

}  // namespace
}  // namespace numsan
