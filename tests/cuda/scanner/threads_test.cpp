// Many threads, streams, devices: exactly the bad tensors come back, each stream's in its order.
#include <algorithm>
#include <chrono>
#include <future>
#include <random>
#include <set>
#include <thread>

#include "cuda/kernel/scan_policy.h"
#include "tests/cuda/scanner/fake_gpu.h"

namespace numsan::gpu {
namespace {

class Threads : public ScannerTest {};

constexpr int kThreads = 4, kStreams = 2, kOps = 150;

/// One thread's work: ops on its own streams, now and then a bad one.
void train(CudaScanner& scanner, int thread, CUcontext context, std::atomic<uint64_t>& sequence,
           std::set<uint64_t>& injected) {
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    std::mt19937 random(static_cast<uint32_t>(thread));
    CUstream streams[kStreams];
    std::vector<std::unique_ptr<GpuTensor>> tensors;
    Storage storages[8 * kStreams];
    for (CUstream& stream : streams) ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    for (Storage& storage : storages) {
        tensors.push_back(std::make_unique<GpuTensor>(int64_t(random() % 3000) + 1));
        storage.lie_in(tensors.back()->view);
    }
    for (int op = 0; op < kOps; ++op) {
        const int on = static_cast<int>(random() % kStreams);
        GpuTensor& tensor = *tensors[size_t(on) * 8 + random() % 8];
        const uint64_t number = sequence++;
        scanner.note_write(tensor.view.storage);
        tensor.fill(streams[on], kOne);
        if (random() % 5 == 0) {
            tensor.set(streams[on], static_cast<int64_t>(random()) % tensor.view.numel, kNan);
            injected.insert(number);
        }
        ScanRequest request;
        request.where = {context, streams[on]};
        request.outputs = &tensor.view;
        request.output_count = 1;
        request.sequence = number;
        if (random() % 4 != 0) request.storages = &kStorages;
        scanner.scan(request);
    }
    for (CUstream stream : streams) scanner.flush({context, stream});
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    for (const Storage& storage : storages) EXPECT_LE(storage.held(), 0);
}

TEST_F(Threads, ExactlyTheBadOnesAndNoOthers) {
    fake_cuda::set_grid(2, 77);
    CudaScanner scanner;
    CUcontext contexts[2] = {context, nullptr};
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&contexts[1], 1), CUDA_SUCCESS);
    for (CUcontext c : contexts) ASSERT_TRUE(scanner.prepare({c, nullptr})) << scanner.reason();
    std::atomic<uint64_t> sequence{0};
    std::set<uint64_t> injected[kThreads], seen;
    std::atomic<bool> over{false};
    std::thread reader([&] {
        for (bool last = false; !last;) {
            last = over;
            uint64_t previous[2] = {0, 0};
            scanner.poll([&](const Hit& hit) {
                EXPECT_TRUE(seen.insert(hit.sequence).second) << "told twice";
                EXPECT_EQ(hit.health.nan, 1);
                uint64_t& before = previous[hit.context == contexts[1]];
                EXPECT_GE(hit.sequence, before);
                before = hit.sequence;
            });
            std::this_thread::yield();
        }
    });
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] { train(scanner, t, contexts[t % 2], sequence, injected[t]); });
    for (std::thread& t : threads) t.join();
    over = true;
    reader.join();
    std::set<uint64_t> expected;
    for (const auto& some : injected) expected.insert(some.begin(), some.end());
    EXPECT_EQ(seen, expected);
    const ScanCounters counters = scanner.counters();
    EXPECT_EQ(counters.scanned, uint64_t(kThreads * kOps));
    EXPECT_EQ(counters.pending, 0u);
    EXPECT_FALSE(counters.incomplete()) << scanner.reason();
    EXPECT_LT(counters.launches, counters.scanned);
}

TEST_F(Threads, ManyOnOneStream) {
    CudaScanner scanner;
    ASSERT_TRUE(scanner.prepare({context, stream}));
    GpuTensor good(64), bad(64);
    good.fill(stream, kOne);
    bad.fill(stream, kNan);
    std::atomic<uint64_t> sequence{0};
    std::vector<Storage> storages(kThreads * 200);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
            for (int i = 0; i < 200; ++i) {
                const GpuTensor& tensor = i % 10 == t ? bad : good;
                scan_later(scanner, tensor, sequence++, stream, storages[size_t(t * 200 + i)]);
                if (i % 50 == 49) scanner.note_write(&storages[size_t(t * 200 + i)]);
            }
        });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(finish(scanner).size(), size_t(kThreads * 20));
    EXPECT_EQ(scanner.counters().scanned, uint64_t(kThreads * 200));
    for (const Storage& storage : storages) EXPECT_EQ(storage.held(), 0);
}

TEST_F(Threads, TwoWithLargeTensorsOnOneStream) {
    CudaScanner scanner("libcuda.so.1", kFewBytes);
    ASSERT_TRUE(scanner.prepare({context, stream}));
    constexpr int64_t kElements = kFewBytes / 4 + 1000;
    constexpr uint64_t kScans = 20;
    GpuTensor good(kElements), bad(kElements);
    good.fill(stream, kOne);
    bad.fill(stream, kOne);
    bad.set(stream, 7, kNan);
    for (uint64_t number = 0; number < kScans; number += 2) {
        // Both are at their first launch when either goes on: two scans come before the looks.
        fake_cuda::stall("cuLaunchKernel", true);
        const uint64_t before = fake_cuda::calls("cuLaunchKernel");
        std::vector<std::thread> threads;
        for (const GpuTensor* tensor : {&good, &bad}) {
            threads.emplace_back([&, tensor] {
                ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
                scan(scanner, *tensor, number + (tensor == &bad), stream);
            });
        }
        while (fake_cuda::calls("cuLaunchKernel") < before + 2) std::this_thread::yield();
        fake_cuda::stall("cuLaunchKernel", false);
        for (std::thread& t : threads) t.join();
    }
    const std::vector<Found> found = finish(scanner);
    EXPECT_EQ(found.size(), kScans / 2);
    for (const Found& one : found) {
        EXPECT_EQ(one.sequence % 2, 1u);
        EXPECT_EQ(one.health.nan, 1);
        EXPECT_EQ(one.health.first_bad, 7);
    }
    for (uint64_t number = 0; number < kScans; ++number) {
        const CudaScanner::Outcome outcome = scanner.outcome(number);
        EXPECT_EQ(outcome.answer, DeviceScanner::Answer::Read) << number;
        EXPECT_EQ(outcome.range.suspicious, number % 2 == 1) << number;
    }
    EXPECT_GT(scanner.counters().launches, kScans) << "looks";
}

/// A thread of the program whose launch waits for the GPU, which may wait for what other threads do next.
class AStalledLaunch : public Threads {
  protected:
    void SetUp() override {
        Threads::SetUp();
        tensor = std::make_unique<GpuTensor>(8);
        other = std::make_unique<GpuTensor>(8);
        ASSERT_TRUE(scanner.prepare({context, stream}));
        fake_cuda::stall("cuLaunchKernel", true);
    }
    void TearDown() override {
        fake_cuda::stall("cuLaunchKernel", false);
        if (launching.joinable()) launching.join();
        Threads::TearDown();
    }
    template <class Work>
    void launch_on_a_thread(Work work) {
        launching = std::thread([this, work] {
            ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
            work();
        });
        while (fake_cuda::calls("cuLaunchKernel") == 0) std::this_thread::yield();
    }
    std::future<void> write(const void* storage) {
        return std::async(std::launch::async, [=, this] { scanner.note_write(storage); });
    }
    static bool ends(const std::future<void>& write) {
        return write.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
    }

    CudaScanner scanner;
    std::unique_ptr<GpuTensor> tensor, other;
    Storage one;
    std::thread launching;
};

TEST_F(AStalledLaunch, OfAScanAtOnceKeepsNoWriteWaiting) {
    launch_on_a_thread([this] { scan(scanner, *tensor, 1, stream); });
    const std::future<void> written = write(other->view.storage);
    EXPECT_TRUE(ends(written));
    fake_cuda::stall("cuLaunchKernel", false);
}

TEST_F(AStalledLaunch, OfDeferredScansKeepsOnlyTheirStoragesWaiting) {
    std::vector<Storage> many(56);  // whose bits are all that a filter has
    launch_on_a_thread([&, this] {
        for (size_t i = 0; i < many.size(); ++i) scan_later(scanner, *tensor, i, stream, many[i]);
        scanner.flush_all();
    });
    const std::future<void> written = write(&one), same = write(&many[3]);
    EXPECT_TRUE(ends(written));
    EXPECT_NE(same.wait_for(std::chrono::seconds(0)), std::future_status::ready);
    fake_cuda::stall("cuLaunchKernel", false);
    EXPECT_TRUE(ends(same));
    launching.join();  // it gives the storages back
    EXPECT_EQ(scanner.counters().scanned, many.size());
}

TEST_F(AStalledLaunch, IsNotBegunForAWriteOfAnotherStorage) {
    std::vector<Storage> held(40), others(40);  // bits of some are the same
    for (size_t i = 0; i < held.size(); ++i) scan_later(scanner, *tensor, i, stream, held[i]);
    const std::future<void> written = std::async(std::launch::async, [&, this] {
        for (const Storage& storage : others) scanner.note_write(&storage);
    });
    EXPECT_TRUE(ends(written));
    EXPECT_EQ(scanner.counters().pending, held.size());
    const std::future<void> same = write(&held[7]);
    while (fake_cuda::calls("cuLaunchKernel") == 0) std::this_thread::yield();
    fake_cuda::stall("cuLaunchKernel", false);
    EXPECT_TRUE(ends(same));
    EXPECT_EQ(scanner.counters().launches, 1u);
}

TEST_F(Threads, AFirstUseByManyIsCounted) {
    CudaScanner scanner;
    GpuTensor tensor(8);
    tensor.fill(stream, kNan);
    std::atomic<uint64_t> sequence{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&] {
            ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
            for (int i = 0; i < 50; ++i) scan(scanner, tensor, sequence++, stream);
        });
    }
    for (std::thread& t : threads) t.join();
    const size_t found = finish(scanner).size();
    EXPECT_EQ(found, scanner.counters().scanned);
    EXPECT_EQ(found + skipped(scanner, SkipReason::SettingUp), uint64_t(kThreads * 50));
    EXPECT_EQ(fake_cuda::calls("cuModuleLoadData"), 1u);
}

}  // namespace
}  // namespace numsan::gpu
