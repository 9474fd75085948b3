// The memory that the device and the host share is the same after a fork.
#include "cuda/device_state.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "tests/cuda/scanner/fake_gpu.h"

namespace numsan::gpu {
namespace {

class MappedMemory : public ScannerTest {
  protected:
    void SetUp() override {
        ScannerTest::SetUp();
        char reason[256];
        ASSERT_TRUE(load_driver("libcuda.so.1", driver, reason, sizeof reason)) << reason;
        state.context = context;
        ASSERT_EQ(set_up(driver, state).result, CUDA_SUCCESS);
    }
    Driver driver;
    DeviceState state;
};

// The device writes the pages that were there when the memory was registered. What both processes see after a fork is
// in those; a copy of the page that the host has written is seen by its writer only.
TEST_F(MappedMemory, KeepsItsPagesWhenTheHostWritesAfterAFork) {
    std::atomic_ref word(state.results_host[0].sequence_plus_one);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        while (word.load(std::memory_order_acquire) != 5) usleep(1000);
        _exit(0);
    }
    word.store(5, std::memory_order_release);
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "the page was copied";
}

}  // namespace
}  // namespace numsan::gpu
