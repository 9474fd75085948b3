// UserFile: what is read, and why another is not.
#include "host/options/user_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/support/builders.h"

namespace numsan {
namespace {

using testing::ScratchFolder;

TEST(UserFile, IsReadWhole) {
    const ScratchFolder scratch;
    const std::string text = std::string(10000, 'x') + '\0' + "end";
    std::ofstream(scratch.file("whole")) << text;
    EXPECT_EQ(read_user_file(scratch.file("whole")).text, text);
    EXPECT_EQ(read_user_file(scratch.file("whole")).problem, "");
    std::ofstream(scratch.file("largest")) << std::string(UserFile::kLargest, '#');
    EXPECT_EQ(read_user_file(scratch.file("largest")).text.size(), UserFile::kLargest);
    std::ofstream(scratch.file("empty")) << "";
    EXPECT_EQ(read_user_file(scratch.file("empty")).problem, "");
}

TEST(UserFile, SaysWhyItWasNotRead) {
    const ScratchFolder scratch;
    const auto problem = [](const std::string& path) {
        const UserFile file = read_user_file(path);
        EXPECT_EQ(file.text, "");
        return file.problem;
    };
    EXPECT_EQ(problem(scratch.file("none")), "was not read: No such file or directory");
    EXPECT_EQ(problem("/"), "is not a regular file");
    ASSERT_EQ(mkfifo(scratch.file("pipe").c_str(), 0600), 0);
    EXPECT_EQ(problem(scratch.file("pipe")), "is not a regular file");
    std::ofstream(scratch.file("large")) << std::string(UserFile::kLargest + 1, '#');
    EXPECT_EQ(problem(scratch.file("large")), "is larger than 1 MiB");
}

}  // namespace
}  // namespace numsan
