// A process is told from others that have its number, on this machine and elsewhere.
#include "host/process/process_identity.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace numsan {
namespace {

/// A process that has ended by now, and what it called itself.
struct Ended {
    pid_t pid = 0;
    std::string identity;

    Ended() {
        int ends[2] = {};
        if (pipe(ends) != 0) return;
        pid = fork();
        if (pid == 0) {
            const std::string text = process_identity();
            _exit(write(ends[1], text.data(), text.size()) == ssize_t(text.size()) ? 0 : 1);
        }
        close(ends[1]);
        char text[256];
        const ssize_t size = read(ends[0], text, sizeof text);
        identity.assign(text, static_cast<size_t>(std::max<ssize_t>(size, 0)));
        close(ends[0]);
        waitpid(pid, nullptr, 0);
    }
};

TEST(ProcessIdentity, IsThatOfNoOther) {
    const std::string mine = process_identity();
    ASSERT_EQ(std::count(mine.begin(), mine.end(), '/'), 2) << mine;
    EXPECT_EQ(process_identity(), mine);
    EXPECT_FALSE(has_ended(getpid(), mine));
    const Ended other;
    ASSERT_FALSE(other.identity.empty());
    EXPECT_TRUE(has_ended(other.pid, other.identity));
}

TEST(ProcessIdentity, NumberThatIsAnothersByNow) {
    const std::string mine = process_identity();
    const std::string earlier = mine.substr(0, mine.rfind('/') + 1) + "1";
    EXPECT_TRUE(has_ended(getpid(), earlier));
}

TEST(ProcessIdentity, OfAnotherContainerOrMachineNobodyCanSay) {
    const Ended other;
    const size_t boot = other.identity.find('/'), space = other.identity.find('/', boot + 1);
    const std::string other_boot = "0f0f0f0f-0000-4000-8000-000000000000" + other.identity.substr(boot);
    const std::string other_space = other.identity.substr(0, boot) + "/1" + other.identity.substr(space);
    for (const std::string& identity : {other_boot, other_space, std::string(), std::string("/"), std::string("x")})
        EXPECT_FALSE(has_ended(other.pid, identity)) << identity;
    EXPECT_FALSE(has_ended(0, other.identity));
    EXPECT_FALSE(has_ended(-1, other.identity)) << "which would be every process";
}

}  // namespace
}  // namespace numsan
