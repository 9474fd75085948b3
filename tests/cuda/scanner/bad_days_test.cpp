// Whatever the driver does, the program goes on, one reason is given, and what was not looked at is counted.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <ostream>
#include <string>
#include <tuple>

#include "cuda/kernel/scan_policy.h"
#include "tests/cuda/scanner/fake_gpu.h"

namespace numsan::gpu {
namespace {

class BadDays : public ScannerTest {
  protected:
    void SetUp() override {
        ScannerTest::SetUp();
        sample = std::make_unique<GpuTensor>(5);
    }
    std::unique_ptr<GpuTensor> sample;

    /// Two scans are skipped for `why`, and the reason has `word`.
    void expect_off(CudaScanner& scanner, SkipReason why, const char* word) {
        Storage storage;
        scan(scanner, *sample, 1, stream);
        const std::string reason = scanner.reason();
        EXPECT_NE(reason.find(word), std::string::npos) << reason;
        scan_later(scanner, *sample, 2, stream, storage);
        EXPECT_EQ(skipped(scanner, why), 2u);
        EXPECT_EQ(storage.held(), 0);
        EXPECT_TRUE(scanner.counters().incomplete());
        EXPECT_EQ(scanner.counters().scanned, 0u);
        EXPECT_STREQ(scanner.reason(), reason.c_str()) << "the first reason stays";
        EXPECT_TRUE(poll(scanner).empty());
    }
};

TEST_F(BadDays, NoDriver) {
    CudaScanner scanner("libnumsan-has-no-such-driver.so.1");
    EXPECT_TRUE(scanner.is_off());
    expect_off(scanner, SkipReason::EngineOff, "libnumsan-has-no-such-driver.so.1");
}

TEST_F(BadDays, AnOldDriver) {
    fake_cuda::set_driver_version(11080);
    CudaScanner scanner;
    expect_off(scanner, SkipReason::EngineOff, "the driver supports CUDA 11.8, numsan needs 12.1 or later");
}

TEST_F(BadDays, AMissingCall) {
    fake_cuda::hide("cuCtxGetId");
    CudaScanner scanner;
    expect_off(scanner, SkipReason::EngineOff, "cuCtxGetId");
}

TEST_F(BadDays, ADriverThatIsOlderThanTheKernels) {
    for (const auto& [version, result, name] :
         {std::tuple(12010, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
          std::tuple(12090, CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE")}) {
        fake_cuda::set_driver_version(version);
        fake_cuda::fail("cuModuleLoadData", result);
        CudaScanner scanner;
        EXPECT_FALSE(scanner.prepare({context, stream}));
        const int minor = version % 1000 / 10;
        EXPECT_EQ(scanner.reason(), "cuModuleLoadData: " + std::string(name) + ": numsan's kernels are of CUDA " +
                                        std::to_string(CUDA_VERSION / 1000) + "." +
                                        std::to_string(CUDA_VERSION % 1000 / 10) + ", the driver is of CUDA 12." +
                                        std::to_string(minor));
    }
}

struct SetUpCase {
    const char* call;
    CUresult result;
    const char* word;
};
void PrintTo(const SetUpCase& c, std::ostream* out) { *out << c.call; }

class SetUpFails : public BadDays, public testing::WithParamInterface<SetUpCase> {};

TEST_P(SetUpFails, OnlyThisContextIsNotLookedAt) {
    CudaScanner scanner;
    fake_cuda::fail(GetParam().call, GetParam().result, 0, 1);
    expect_off(scanner, SkipReason::SetUpFailed, GetParam().word);
    EXPECT_FALSE(scanner.is_off());
    CUcontext other;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(other), CUDA_SUCCESS);
    EXPECT_TRUE(scanner.prepare({other, nullptr}));
}

INSTANTIATE_TEST_SUITE_P(
    Calls, SetUpFails,
    testing::Values(SetUpCase{"cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"},
                    SetUpCase{"cuMemHostRegister", CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED"},
                    SetUpCase{"cuMemHostGetDevicePointer", CUDA_ERROR_OUT_OF_MEMORY, "cuMemHostGetDevicePointer"},
                    SetUpCase{"cuModuleLoadData", CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
                    SetUpCase{"cuModuleGetFunction", CUDA_ERROR_NOT_FOUND, "cuModuleGetFunction: CUDA error 500"},
                    SetUpCase{"cuFuncGetAttribute", CUDA_ERROR_OUT_OF_MEMORY, "cuFuncGetAttribute"},
                    SetUpCase{"cuStreamCreate", CUDA_ERROR_OUT_OF_MEMORY, "cuStreamCreate"}),
    [](const auto& instance) { return std::string(instance.param.call); });

TEST_F(BadDays, AfterALookThatIsRefusedOneBlockDoesItAll) {
    CudaScanner scanner("libcuda.so.1", kFewBytes);
    GpuTensor large(kFewBytes / 4 + 1);
    large.fill(stream, kNan);
    fake_cuda::fail("cuLaunchKernel", CUDA_ERROR_INVALID_HANDLE, 1, 1);  // of the stream: the context lives
    scan(scanner, large, 1, stream);
    EXPECT_TRUE(finish(scanner).empty()) << "nobody has looked";
    EXPECT_EQ(skipped(scanner, SkipReason::StreamInvalid), 1u);
    EXPECT_FALSE(scanner.is_off());
    for (uint64_t number = 2; number < 4; ++number) {
        scan(scanner, large, number, stream);
        const std::vector<Found> found = finish(scanner);
        ASSERT_EQ(found.size(), 1u);
        EXPECT_EQ(found[0].sequence, number);
        EXPECT_EQ(found[0].health.nan, kFewBytes / 4 + 1);
    }
    EXPECT_EQ(scanner.counters().launches, 3u);
}

TEST_F(BadDays, AStickyErrorEndsItAll) {
    CudaScanner scanner;
    GpuTensor tensor(5);
    Storage storage;
    tensor.fill(stream, kNan);
    scan(scanner, tensor, 1, stream);
    EXPECT_EQ(finish(scanner).size(), 1u);
    scan_later(scanner, tensor, 2, stream, storage);
    fake_cuda::make_sticky(context, CUDA_ERROR_ILLEGAL_ADDRESS);
    scanner.flush_all();
    EXPECT_TRUE(scanner.is_off());
    const uint64_t calls = fake_cuda::calls(nullptr);
    scan(scanner, tensor, 3, stream);
    EXPECT_EQ(fake_cuda::calls(nullptr), calls) << "no more calls";
    EXPECT_EQ(skipped(scanner, SkipReason::EngineOff), 2u);
    EXPECT_EQ(scanner.counters().pending, 0u);
    EXPECT_EQ(storage.held(), 0);
    EXPECT_NE(std::strstr(scanner.reason(), "CUDA_ERROR_ILLEGAL_ADDRESS"), nullptr) << scanner.reason();
    EXPECT_TRUE(poll(scanner).empty()) << "the ring can still be read";
}

TEST_F(BadDays, ADestroyedContextIsDroppedAndTheNextOneIsTaken) {
    CudaScanner scanner;
    CUcontext lost;
    ASSERT_EQ(cuCtxCreate(&lost, nullptr, 0, 0), CUDA_SUCCESS);
    CUstream its_stream;
    ASSERT_EQ(cuStreamCreate(&its_stream, 0), CUDA_SUCCESS);
    auto tensor = std::make_unique<GpuTensor>(5);
    tensor->fill(its_stream, kNan);
    Storage storage;
    context = lost;
    scan(scanner, *tensor, 1, its_stream);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    scan_later(scanner, *tensor, 2, its_stream, storage);
    ASSERT_EQ(cuCtxDestroy(lost), CUDA_SUCCESS);
    scanner.flush_all();
    scan(scanner, *tensor, 3, its_stream);
    EXPECT_EQ(scanner.counters().all_skipped(), 2u);
    EXPECT_GE(skipped(scanner, SkipReason::ContextLost), 1u);
    EXPECT_EQ(storage.held(), 0);
    EXPECT_FALSE(scanner.is_off());
    EXPECT_EQ(poll(scanner).size(), 1u) << "what was found before is still told";
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    GpuTensor next(5);
    next.fill(stream, kNan);
    scan(scanner, next, 4, stream);
    EXPECT_EQ(finish(scanner).size(), 1u);
}

/// Writes to memory that is shared with other processes end this one. How many mappings there are.
int protect_shared_memory() {
    std::ifstream maps("/proc/self/maps");
    int found = 0;
    for (std::string line; std::getline(maps, line);) {
        uintptr_t begin, end;
        char access[5];
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, access) != 3) continue;
        if (std::strcmp(access, "rw-s") != 0) continue;
        found += mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ) == 0;
    }
    return found;
}

TEST_F(BadDays, TheChildOfAForkTouchesNothing) {
    auto owner = std::make_unique<CudaScanner>();
    CudaScanner& scanner = *owner;
    GpuTensor tensor(5);
    Storage storage;
    tensor.fill(stream, kNan);
    scan(scanner, tensor, 1, stream);
    scan_later(scanner, tensor, 2, stream, storage);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    const pid_t child = fork();
    if (child == 0) {
        const bool is_protected = protect_shared_memory() > 0;
        const uint64_t before = fake_cuda::calls(nullptr);
        ScanRequest request;
        request.where = {context, stream};
        request.outputs = &tensor.view;
        request.output_count = 1;
        scanner.scan(request);
        scanner.flush_all();
        scanner.note_write(tensor.view.storage);
        const auto ignore = [](const Hit&) {};
        const int hits = scanner.poll(ignore) + scanner.poll_replays(ignore);
        const bool counted = scanner.counters().skipped[int(SkipReason::Forked)] == 1;
        const bool unread = scanner.outcome(1).answer == DeviceScanner::Answer::NotRead && !scanner.first_offender();
        scanner.forget(1);
        scanner.close();
        owner.reset();
        const bool quiet = hits == 0 && fake_cuda::calls(nullptr) == before;
        _exit(is_protected && counted && unread && quiet ? 0 : 1);
    }
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(finish(scanner).size(), 2u) << "the parent goes on";
}

TEST_F(BadDays, TheEndInAnyOrder) {
    Storage storage;
    auto scanner = std::make_unique<CudaScanner>();
    GpuTensor tensor(5);
    scan_later(*scanner, tensor, 1, stream, storage);
    fake_cuda::fail("cuLaunchKernel", CUDA_ERROR_DEINITIALIZED);
    const uint64_t calls = fake_cuda::calls(nullptr);
    scanner->close();
    EXPECT_EQ(skipped(*scanner, SkipReason::Closed), 1u);
    scan(*scanner, tensor, 2, stream);
    EXPECT_EQ(skipped(*scanner, SkipReason::Closed), 2u);
    scanner.reset();
    EXPECT_EQ(fake_cuda::calls(nullptr), calls);
    EXPECT_EQ(storage.held(), 1) << "the program's code is not run any more";
}

}  // namespace
}  // namespace numsan::gpu
