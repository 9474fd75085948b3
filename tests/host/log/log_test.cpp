// The log: whole texts, the levels of `verbosity`, and a child that is forked in the middle of one.
#include "host/log/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

namespace numsan {
namespace {

/// A pipe that keeps writes apart: a read gives what one write wrote (O_DIRECT, up to PIPE_BUF).
class Writes {
  public:
    Writes() { EXPECT_EQ(pipe2(ends_, O_DIRECT | O_NONBLOCK), 0); }
    ~Writes() {
        close(ends_[0]);
        close(ends_[1]);
    }
    Log log() {
        return Log([this] { return dup(ends_[1]); });
    }
    std::vector<std::string> all() {
        std::vector<std::string> writes;
        char text[4096];
        for (ssize_t length; (length = read(ends_[0], text, sizeof text)) > 0;)
            writes.emplace_back(text, static_cast<size_t>(length));
        return writes;
    }

  private:
    int ends_[2] = {-1, -1};
};

using Texts = std::vector<std::string>;

TEST(Log, EachLineIsOneWrite) {
    Writes writes;
    const Log log = writes.log();
    log.line(Level::Always, "first");
    const std::string wide(3000, 'x');
    log.line(Level::Always, wide);
    log.text(Level::Always, "two\nlines\n");
    EXPECT_EQ(writes.all(), (Texts{"numsan: first\n", "numsan: " + wide + "\n", "two\nlines\n"}));
}

TEST(Log, BracesAreText) {
    Writes writes;
    const Log log = writes.log();
    log.line(Level::Always, "{} {0} {");
    log.text(Level::Always, "}{}\n");
    EXPECT_EQ(writes.all(), (Texts{"numsan: {} {0} {\n", "}{}\n"}));
}

TEST(Log, VerbosityChoosesLevels) {
    const Level levels[] = {Level::Always, Level::Summary, Level::Hint, Level::Debug};
    for (int64_t verbosity = 0; verbosity <= 3; ++verbosity) {
        Writes writes;
        Log log = writes.log();
        log.set_verbosity(verbosity);
        for (int64_t level = 0; level <= 3; ++level) {
            EXPECT_EQ(log.shows(levels[level]), level <= verbosity);
            log.line(levels[level], std::to_string(level));
        }
        EXPECT_EQ(writes.all().size(), static_cast<size_t>(verbosity) + 1);
        log.silence();
        log.line(Level::Always, "nothing");
        EXPECT_EQ(writes.all(), Texts{});
    }
}

TEST(Log, StderrTakesWhatCannotBeOpenedAndStdoutNothing) {
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    Log([] { return -1; }).line(Level::Always, "no file");
    Log().line(Level::Always, "plain");
    stderr_log().line(Level::Always, "always");
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "numsan: no file\nnumsan: plain\nnumsan: always\n");
}

TEST(Log, DescriptorIsClosedAndErrnoKept) {
    int opened = -1;
    const Log log([&] { return opened = open("/dev/full", O_WRONLY | O_CLOEXEC); });
    errno = EDOM;
    log.line(Level::Always, "cannot be written");
    EXPECT_EQ(errno, EDOM);
    EXPECT_EQ(fcntl(opened, F_GETFD), -1);
}

/// Threads write all the time while children are forked: a lock that one of them held would stop a child for ever.
TEST(Log, ForkedChildrenCanWrite) {
    Writes writes;
    const Log log = writes.log();
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&] {
            while (!stop) log.line(Level::Always, "parent");
        });
    }
    int ended = 0, status = 0;
    constexpr int kChildren = 30;
    for (int i = 0; i < kChildren && status == 0; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(5);
            log.line(Level::Always, "child");
            _exit(0);
        }
        while (waitpid(child, &status, 0) < 0) {
        }
        ended += status == 0;
        for (const std::string& write : writes.all())
            EXPECT_TRUE(write == "numsan: parent\n" || write == "numsan: child\n") << write;
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(ended, kChildren);
}

}  // namespace
}  // namespace numsan
