// Which outputs are read when they are made. What a tier leaves out is kept for a look back (OpLog).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/base/output_set.h"
#include "host/options/options.h"

namespace numsan {

/// [MT] No lock, no allocation.
///
/// full      every output
/// boundary  results of kBoundary ops, outputs below kSmallBytes, and what sentinel reads
/// sentinel  outputs below kTinyBytes (losses, norms, statistics), parameters that are written. The caller adds what
///           backward() starts from, gradients that reach a leaf, and what is sent or read on the host. On a device
///           only these: a launch costs more than a small tensor, and parameters are large; both are left to a look
///           back.
///
/// A value that sounds the alarm raises the tier to full for the rest of the step and kAlarmSteps more. On a device a
/// run that goes on alarming is believed less and less often: after 4 steps, then 8, and so on; from the start again
/// once it has been silent for 64.
class TierPolicy {
  public:
    static constexpr int64_t kSmallBytes = 256 << 10;
    static constexpr int64_t kTinyBytes = 16 << 10;  ///< costs what the hook does: a microsecond at most
    static constexpr int64_t kAlarmSteps = 3;

    /// Whose memory the outputs are in.
    enum class Memory : uint8_t { Host, Device };

    explicit TierPolicy(Tier tier, Memory memory = Memory::Host)
        : tier_(tier != Tier::Auto       ? tier
                : memory == Memory::Host ? Tier::Full
                                         : Tier::Sentinel),
          memory_(memory) {}

    bool reads_all(int64_t step) const noexcept { return tier_ == Tier::Full || is_alarmed(step); }
    bool is_alarmed(int64_t step) const noexcept { return step <= alarm_until_.load(std::memory_order_relaxed); }
    bool is(Tier tier) const noexcept { return tier_ == tier; }
    /// Tier::Full never has a log of the host's ops.
    bool keeps_log() const noexcept { return tier_ != Tier::Full; }

    /// The outputs that are read now.
    OutputSet reads(const OpEvent& event) noexcept;

    void alarm(int64_t step) noexcept;

  private:
    static constexpr int64_t kFirstPause = 4, kLongestPause = 1024, kSilence = 64;  ///< steps

    bool is_boundary(const OpInfo& op) noexcept;
    bool is_believed(int64_t step, int64_t until) noexcept;

    const Tier tier_;
    const Memory memory_;
    std::atomic<int64_t> alarm_until_{-1};
    std::atomic<int64_t> last_alarm_{-kSilence - 1}, pause_{kFirstPause};  ///< of a device
    static constexpr size_t kOps = 4096;
    enum : uint8_t { kUnknown, kIsInner, kIsBoundary };
    std::array<std::atomic<uint8_t>, kOps> ops_{};  ///< by OpInfo::id
};

}  // namespace numsan
