// Folders and files that others could have written, made for real in a temporary folder.
#include "host/options/trusted_path.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/builders.h"

namespace numsan {
namespace {

namespace fs = std::filesystem;
using testing::ScratchFolder;

constexpr uid_t kAnotherUser = 12345;

void make_folder(const std::string& path, mode_t mode) {
    fs::create_directories(path);
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
}

void make_file(const std::string& path, mode_t mode) {
    std::ofstream(path) << "x";
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
}

/// False where this process may not: only root can, and in some containers not even root.
bool give_away(const std::string& path, uid_t user, gid_t group) { return lchown(path.c_str(), user, group) == 0; }

constexpr const char* kCannotGiveAway = "no file can be given to another user here";

mode_t mode_of(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

void expect_unsafe(const TrustedPath& found, const std::string& why, const std::string& cure) {
    EXPECT_EQ(found.trust, Trust::Unsafe);
    EXPECT_EQ(found.why, why);
    EXPECT_EQ(found.cure, cure);
}

std::string us() { return geteuid() == 0 ? "root" : "user " + std::to_string(geteuid()) + " or root"; }

/// Of a folder in a folder of ours.
class TrustedPathTest : public testing::Test {
  protected:
    std::string at(const std::string& name) const { return fs::canonical(scratch_.path()) / name; }
    ScratchFolder scratch_;
};

TEST_F(TrustedPathTest, FolderThatOnlyWeCanWrite) {
    for (const mode_t mode : {0700, 0755, 0500}) {
        make_folder(at("cache"), mode);
        const TrustedPath found = trusted_folder(at("cache"), Missing::Make);
        EXPECT_EQ(found.trust, Trust::Yes) << found.why;
        EXPECT_EQ(found.resolved, at("cache"));
    }
}

TEST_F(TrustedPathTest, FolderThatOthersCanWrite) {
    make_folder(at("cache"), 0770);
    expect_unsafe(trusted_folder(at("cache"), Missing::Make), at("cache") + " can be written by its group (mode 0770)",
                  "chmod go-w " + at("cache"));
    make_folder(at("cache"), 0702);
    expect_unsafe(trusted_folder(at("cache"), Missing::Make), at("cache") + " can be written by everybody (mode 0702)",
                  "chmod go-w " + at("cache"));
    make_folder(at("cache"), 01777);
    EXPECT_EQ(trusted_folder(at("cache"), Missing::Make).trust, Trust::Unsafe) << "others can add files to it";
}

TEST_F(TrustedPathTest, FolderAndFileOfAnotherUser) {
    make_folder(at("cache"), 0755);
    make_file(at("cache/file"), 0755);
    if (!give_away(at("cache/file"), kAnotherUser, kAnotherUser)) GTEST_SKIP() << kCannotGiveAway;
    expect_unsafe(trusted_file(at("cache/file")), at("cache/file") + " belongs to user 12345, not to root", "");
    ASSERT_TRUE(give_away(at("cache/file"), 0, 0));
    EXPECT_EQ(trusted_file(at("cache/file")).trust, Trust::Yes);
    ASSERT_TRUE(give_away(at("cache"), kAnotherUser, kAnotherUser));
    expect_unsafe(trusted_folder(at("cache"), Missing::Make), at("cache") + " belongs to user 12345, not to " + us(),
                  "");
    expect_unsafe(trusted_file(at("cache/file")), at("cache") + " above it belongs to user 12345", "");
}

TEST_F(TrustedPathTest, FolderAboveThatOthersCanWrite) {
    make_folder(at("shared/cache"), 0700);
    make_folder(at("shared"), 0777);
    expect_unsafe(trusted_folder(at("shared/cache"), Missing::Make),
                  at("shared") + " above it can be written by everybody (mode 0777)", "chmod go-w " + at("shared"));
    make_folder(at("shared"), 01777);
    EXPECT_EQ(trusted_folder(at("shared/cache"), Missing::Make).trust, Trust::Yes) << "nobody else can rename it";
    make_folder(at("shared"), 0775);
    const bool private_group = getegid() == geteuid();
    EXPECT_EQ(trusted_folder(at("shared/cache"), Missing::Make).trust, private_group ? Trust::Yes : Trust::Unsafe);
    if (!give_away(at("shared"), geteuid(), kAnotherUser)) GTEST_SKIP() << "not a group of others: " << kCannotGiveAway;
    expect_unsafe(trusted_folder(at("shared/cache"), Missing::Make),
                  at("shared") + " above it can be written by its group (mode 0775)", "chmod g-w " + at("shared"));
}

TEST_F(TrustedPathTest, NothingIsMadeWhereOthersCouldExchangeIt) {
    make_folder(at("shared"), 0777);
    EXPECT_EQ(trusted_folder(at("shared/a/b"), Missing::Make).trust, Trust::Unsafe);
    EXPECT_TRUE(fs::is_empty(at("shared")));
}

TEST_F(TrustedPathTest, MissingFoldersAreMadeForThisUserOnly) {
    const mode_t before = umask(0);
    EXPECT_EQ(trusted_folder(at("a/b/c"), Missing::Accept).trust, Trust::Yes);
    EXPECT_FALSE(fs::exists(at("a")));
    EXPECT_EQ(trusted_folder(at("a/b/c"), Missing::Make).trust, Trust::Yes);
    umask(before);
    EXPECT_EQ(mode_of(at("a")), 0700u);
    EXPECT_EQ(mode_of(at("a/b/c")), 0700u);
}

TEST_F(TrustedPathTest, LinksAreFollowedIfTheyAreOurs) {
    make_folder(at("real"), 0700);
    fs::create_symlink("real", at("link"));
    fs::create_symlink(at("link"), at("link to link"));
    EXPECT_EQ(trusted_folder(at("link to link"), Missing::Make).resolved, at("real"));
    EXPECT_EQ(trusted_folder(at("link/../link/."), Missing::Make).resolved, at("real"));
    fs::create_symlink(at("loop"), at("loop"));
    EXPECT_EQ(trusted_folder(at("loop"), Missing::Make).trust, Trust::Unusable);
    if (!give_away(at("link"), kAnotherUser, kAnotherUser)) GTEST_SKIP() << "not a link of others: " << kCannotGiveAway;
    expect_unsafe(trusted_folder(at("link to link"), Missing::Make), at("link") + " is a link of user 12345", "");
}

TEST_F(TrustedPathTest, FileMustBeOneItself) {
    make_folder(at("cache"), 0700);
    EXPECT_EQ(trusted_file(at("cache/none")).trust, Trust::Unusable);
    make_file(at("cache/file"), 0766);
    expect_unsafe(trusted_file(at("cache/file")), at("cache/file") + " can be written by everybody (mode 0766)",
                  "chmod go-w " + at("cache/file"));
    make_file(at("cache/file"), 0600);
    EXPECT_EQ(trusted_file(at("cache/file")).trust, Trust::Yes);
    fs::create_symlink(at("cache/file"), at("cache/link"));
    expect_unsafe(trusted_file(at("cache/link")), at("cache/link") + " is a link, not a file", "");
    ASSERT_EQ(mkfifo(at("cache/pipe").c_str(), 0600), 0);
    EXPECT_EQ(trusted_file(at("cache/pipe")).trust, Trust::Unsafe);
}

TEST_F(TrustedPathTest, WhatIsNoFolderIsUnusable) {
    make_file(at("file"), 0600);
    EXPECT_EQ(trusted_folder(at("file"), Missing::Make).why, at("file") + ": Not a directory");
    EXPECT_EQ(trusted_folder(at("file/below"), Missing::Make).why, at("file") + ": Not a directory");
    EXPECT_EQ(trusted_folder("/proc/none/cache", Missing::Make).trust, Trust::Unusable);
}

TEST_F(TrustedPathTest, PathsAreShownOnOneLine) {
    make_folder(at("a\nb"), 0777);
    EXPECT_EQ(trusted_folder(at("a\nb"), Missing::Make).why.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace numsan
