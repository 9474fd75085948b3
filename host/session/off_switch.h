// The first internal failure turns numsan off with one line; the program goes on.
#pragma once

#include <atomic>
#include <string>

#include "host/session/reporter.h"

namespace numsan {

/// [MT]
class OffSwitch {
  public:
    explicit OffSwitch(const Reporter& reporter) : reporter_(reporter) {}

    bool on() const noexcept { return on_.load(std::memory_order_relaxed); }
    bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

    /// `why` goes to the log, the first time.
    void fail(const char* why) noexcept {
        if (failed_.exchange(true)) return;
        turn_off();
        try {
            reporter_.say(std::string("off: ") + why);
        } catch (...) {
            // Nothing is left to say it with; the program runs on.
        }
    }
    void turn_off() noexcept { on_.store(false); }

  private:
    const Reporter& reporter_;
    std::atomic<bool> on_{true};
    std::atomic<bool> failed_{false};
};

}  // namespace numsan
