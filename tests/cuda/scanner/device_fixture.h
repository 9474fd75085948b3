// The DeviceScanner over the fake driver, and what it answers.
#pragma once

#include <string>

#include "cuda/cuda_device_scanner.h"
#include "tests/cuda/scanner/fake_gpu.h"

namespace numsan::gpu {

inline std::string name(DeviceScanner::Answer answer) {
    switch (answer) {
        case DeviceScanner::Answer::NotYet: return "not yet";
        case DeviceScanner::Answer::Read: return "read";
        default: return "not read";
    }
}

class DeviceScannerTest : public ScannerTest {
  protected:
    using Answer = DeviceScanner::Answer;
    using Taken = DeviceScanner::Taken;

    static Taken scan(DeviceScanner& scanner, const TensorView* outputs, int count, uint64_t sequence, CUstream on,
                      const TensorView* inputs = nullptr, int input_count = 0, int16_t device = 0,
                      const StorageApi* held_by = nullptr) {
        const DeviceScan one{
            {on, device, true}, outputs, count, inputs, input_count, sequence, false, false, held_by, {}, false};
        return scanner.scan(&one, 1);
    }
    static Taken scan(DeviceScanner& scanner, const GpuTensor& output, uint64_t sequence, CUstream on,
                      int16_t device = 0) {
        return scan(scanner, &output.view, 1, sequence, on, nullptr, 0, device);
    }
    static void synchronize(DeviceScanner& scanner) {
        scanner.flush();
        EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    }
    /// The reason why the output was not read; what it was answered instead, if it was.
    static std::string why_not(DeviceScanner& scanner, uint64_t sequence) {
        DeviceScanner::Reading reading{};
        const Answer answer = scanner.answer(sequence, reading);
        if (answer != Answer::NotRead) return name(answer);
        EXPECT_EQ(scanner.answer(sequence, reading), Answer::NotYet) << "answered once";
        return reading.why;
    }
    static std::string text(SkipReason why) { return kSkipReasons[static_cast<int>(why)]; }
};

}  // namespace numsan::gpu
