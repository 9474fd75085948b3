// The figures of a run for its report: coverage, tiers, births, times, and what could not be seen.
#pragma once

#include <atomic>
#include <chrono>

#include "host/base/adapter_abi.h"
#include "host/device/devices.h"
#include "host/event/event_parts.h"
#include "host/finding/run_summary.h"
#include "host/session/off_switch.h"
#include "host/session/session_facts.h"
#include "host/stacks/stack_source.h"

namespace numsan {

/// [MT]
class RunCounts {
  public:
    /// All outlive this.
    RunCounts(const EventParts& parts, const Devices& devices, const StackSource& stacks, const SessionFacts& facts,
              const OffSwitch& off)
        : parts_(parts),
          devices_(devices),
          stacks_(stacks),
          facts_(facts),
          off_(off),
          started_(std::chrono::steady_clock::now()) {}

    /// What adds to coverage what the session does not know; before the first event.
    void use(void (*add)(RunSummary&)) noexcept { add_coverage_ = add; }
    void use(const AdapterApi& adapter) noexcept { adapter_.store(&adapter, std::memory_order_release); }
    /// The run is over: what is not judged now never will be.
    void end() noexcept { ended_.store(true); }

    RunSummary now() const;

  private:
    void add_coverage(RunSummary& run) const;
    void add_groups(RunSummary& run) const;

    const EventParts& parts_;
    const Devices& devices_;
    const StackSource& stacks_;
    const SessionFacts& facts_;
    const OffSwitch& off_;
    const std::chrono::steady_clock::time_point started_;
    void (*add_coverage_)(RunSummary&) = nullptr;
    std::atomic<const AdapterApi*> adapter_{nullptr};
    std::atomic<bool> ended_{false};
};

}  // namespace numsan
