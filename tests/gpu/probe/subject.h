// What the phases share: the device, the engine's state of its context, and the limits of the run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cuda/cuda_scanner.h"
#include "cuda/device_state.h"
#include "cuda/driver.h"
#include "tests/gpu/probe/report.h"

namespace numsan::gpu::probe {

class Subject {
  public:
    Driver driver;                       ///< the engine's calls, loaded as the engine does
    size_t max_bytes = size_t(1) << 30;  ///< of one tensor
    uint64_t seed = 1;

    /// Kernels, scratch and rings as the engine sets them up, made at first use.
    const DeviceState& state();
    /// The engine itself, prepared for the context; made at first use.
    CudaScanner& scanner();
    /// A number for the next `count` outputs of the scanner.
    uint64_t sequence(int count = 1) {
        const uint64_t first = next_sequence_;
        next_sequence_ += static_cast<uint64_t>(count);
        return first;
    }
    StreamRef on(CUstream stream) const { return {gpu().context, stream, -1}; }

    /// Of the device's L2; 0 where the driver does not say.
    size_t l2_bytes() const;
    /// The largest tensor of `wanted` bytes at most that the run allows and of which `copies` find room.
    size_t fitting(size_t wanted, int copies) const;

  private:
    DeviceState state_;
    bool is_set_up_ = false;
    std::unique_ptr<CudaScanner> scanner_;
    uint64_t next_sequence_ = 1;
};

/// A phase under way: where its findings go, and when it has to stop.
struct Phase {
    Subject& subject;
    Report& report;
    Json data = Json::object();
    std::string line{};  ///< the phase in a line
    Clock::time_point end{};
    bool cut_short = false;

    /// To be asked between measurements; true once the phase's time is over.
    bool is_over() {
        cut_short = cut_short || Clock::now() >= end;
        return cut_short;
    }
    void note() { report.note(data); }
};

// The phases. They throw CallFailed and Wrong; what they had found until then stays in Phase::data.
void facts(Phase& phase);
void twins(Phase& phase);
void bandwidth(Phase& phase);
void calls(Phase& phase);
void launches(Phase& phase);
void graph(Phase& phase);
void latency(Phase& phase);
void worst(Phase& phase);

}  // namespace numsan::gpu::probe
