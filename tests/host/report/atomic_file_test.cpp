// write_atomically: the old file or the new one, and nothing left behind.
#include "host/report/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

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

TEST(AtomicFile, WritesPiecesInTheirOrderAndZerosWhereThereIsNoData) {
    const ScratchFolder scratch;
    const std::vector<FilePart> parts = {{"ab", 2}, {nullptr, 3}, {"c", 1}, {nullptr, 1 << 20}};
    EXPECT_EQ(write_atomically(scratch.file("d"), parts), std::nullopt);
    EXPECT_EQ(file_text(scratch.file("d")), std::string("ab\0\0\0c", 6) + std::string(1 << 20, '\0'));
    struct stat status {};
    ASSERT_EQ(stat(scratch.file("d").c_str(), &status), 0);
    EXPECT_LT(status.st_blocks * 512, 1 << 20) << "zeros at the end take room on disk";
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

constexpr uid_t kStranger = 12345;

/// False where this process may not: only root can, and in some containers not even root.
bool can_chown() {
    const ScratchFolder scratch;
    return chown(scratch.path().c_str(), kStranger, kStranger) == 0;
}

TEST(AtomicFile, DoesNotFollowTheLinkOfAnotherUser) {
    if (!can_chown()) GTEST_SKIP() << "no link can be given to another user here";
    const ScratchFolder scratch;
    ASSERT_EQ(chmod(scratch.path().c_str(), 01777), 0);
    ASSERT_EQ(write_atomically(scratch.file("target"), "mine"), std::nullopt);
    std::filesystem::create_symlink(scratch.file("target"), scratch.file("r.json"));
    ASSERT_EQ(lchown(scratch.file("r.json").c_str(), kStranger, kStranger), 0);
    EXPECT_EQ(write_atomically(scratch.file("r.json"), "report"),
              "cannot write " + scratch.file("r.json") + ": it is a link of user 12345, which is not followed");
    EXPECT_EQ(open_to_append(scratch.file("r.json")), -1);
    EXPECT_EQ(file_text(scratch.file("target")), "mine");
    std::filesystem::create_symlink(scratch.file("not made"), scratch.file("dangling"));
    ASSERT_EQ(lchown(scratch.file("dangling").c_str(), kStranger, kStranger), 0);
    EXPECT_NE(write_atomically(scratch.file("dangling"), "report"), std::nullopt);
    EXPECT_EQ(open_to_append(scratch.file("dangling")), -1);
    EXPECT_FALSE(std::filesystem::exists(scratch.file("not made")));
}

TEST(AtomicFile, DoesNotFeedThePipeOfAnotherUserInASharedFolder) {
    if (!can_chown()) GTEST_SKIP() << "no pipe can be given to another user here";
    const ScratchFolder scratch;
    const std::string pipe = scratch.file("r.json");
    ASSERT_EQ(mkfifo(pipe.c_str(), 0666), 0);
    ASSERT_EQ(chown(pipe.c_str(), kStranger, kStranger), 0);
    const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    ASSERT_GE(reader, 0);
    EXPECT_EQ(write_atomically(pipe, "report"), std::nullopt) << "a folder of ours: we were given it";
    ASSERT_EQ(chmod(scratch.path().c_str(), 01777), 0);
    EXPECT_EQ(write_atomically(pipe, "report"), "cannot write " + pipe +
                                                    ": it is a pipe or a device of user 12345 in a folder that "
                                                    "everybody may write");
    close(reader);
}

TEST(AtomicFile, TakesNoWritePermissionOverFromAnotherUsersFile) {
    if (!can_chown()) GTEST_SKIP() << "no file can be given to another user here";
    const ScratchFolder scratch;
    const std::string path = scratch.file("r.json");
    ASSERT_EQ(write_atomically(path, "planted"), std::nullopt);
    ASSERT_EQ(chown(path.c_str(), kStranger, kStranger), 0);
    ASSERT_EQ(chmod(path.c_str(), 04666), 0);
    ASSERT_EQ(write_atomically(path, "report"), std::nullopt);
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, geteuid());
    EXPECT_EQ(status.st_mode & 07777, 0644u);
}

TEST(AtomicFile, AppendsToWhatIsThereAndToOwnLinks) {
    const ScratchFolder scratch;
    std::filesystem::create_symlink(scratch.file("log"), scratch.file("link"));
    for (const char* name : {"log", "link", "log"}) {
        const int fd = open_to_append(scratch.file(name));
        ASSERT_GE(fd, 0);
        EXPECT_EQ(::write(fd, "line\n", 5), 5);
        close(fd);
    }
    EXPECT_EQ(file_text(scratch.file("log")), "line\nline\nline\n");
}

}  // namespace
}  // namespace numsan
