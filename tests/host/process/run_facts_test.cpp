// What a report says about its process, asked of the system.
#include "host/process/run_facts.h"

#include <gtest/gtest.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace numsan {
namespace {

std::atomic<bool> inside{false}, leave{false};

int wait_inside(dl_phdr_info*, size_t, void*) {
    inside = true;
    while (!leave) std::this_thread::yield();
    return 1;
}

TEST(RunFacts, AChildThatIsForkedWhileLibrariesAreListedAsksForGeneratedKernels) {
    std::thread lists([] { dl_iterate_phdr(wait_inside, nullptr); });
    while (!inside) std::this_thread::yield();
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(runs_generated_kernels() ? 1 : 0);
    }
    leave = true;
    lists.join();
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace numsan
