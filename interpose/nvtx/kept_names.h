// Names that a program gives once and means by a handle from then on: of domains, and strings that it registers.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace numsan {

/// Never taken back: a handle may be used as long as the process lives.
struct KeptName {
    std::string text;
};

/// [MT] Without a lock, so that a fork finds none held. The same name has the same address.
class KeptNames {
  public:
    static constexpr size_t kMost = 4096;

    /// Null where there is no room, or no memory.
    const KeptName* keep(const std::string& text) noexcept;

  private:
    static constexpr size_t kSlots = 2 * kMost;

    std::atomic<const KeptName*> slots_[kSlots]{};
    std::atomic<size_t> count_{0};
};

}  // namespace numsan
