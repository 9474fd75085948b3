// The gate over a fork: the child counts the threads that it has.
#include "interpose/python/api/gate.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace numsan {
namespace {

/// Forks, resets the child's gate as the fork handler does, and returns how many are inside there, before and after
/// the forking thread left `scopes` times.
std::pair<int, int> inside_in_child(PythonAccess& gate, int scopes) {
    int result[2];
    EXPECT_EQ(pipe(result), 0);
    const pid_t child = fork();
    if (child == 0) {
        gate.reset();
        int seen[2] = {gate.inside(), 0};
        for (int i = 0; i < scopes; ++i) gate.leave();
        seen[1] = gate.inside();
        _exit(write(result[1], seen, sizeof seen) == sizeof seen ? 0 : 1);
    }
    int seen[2] = {-1, -1};
    EXPECT_EQ(read(result[0], seen, sizeof seen), ssize_t(sizeof seen));
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    close(result[0]);
    close(result[1]);
    return {seen[0], seen[1]};
}

TEST(PythonAccess, AForkedChildForgetsThreadsThatItDoesNotHave) {
    PythonAccess gate;
    std::atomic<bool> entered{false};
    std::atomic<bool> done{false};
    std::thread other([&] {
        gate.enter();
        entered = true;
        entered.notify_one();
        done.wait(false);
        gate.leave();
    });
    entered.wait(false);
    EXPECT_EQ(gate.inside(), 1);
    EXPECT_EQ(inside_in_child(gate, 0), std::pair(0, 0));
    done = true;
    done.notify_one();
    other.join();
    EXPECT_EQ(gate.inside(), 0);
}

TEST(PythonAccess, AForkInsideStaysInside) {
    PythonAccess gate;
    ASSERT_TRUE(gate.enter());
    ASSERT_TRUE(gate.enter());
    EXPECT_EQ(inside_in_child(gate, 2), std::pair(2, 0));
    gate.leave();
    gate.leave();
    EXPECT_EQ(gate.inside(), 0);
}

}  // namespace
}  // namespace numsan
