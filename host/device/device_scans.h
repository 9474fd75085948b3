// What the scanner is handed of one event: its outputs with the operands to blame, and the values that go elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/base/device_scanner.h"
#include "host/device/device_log.h"

namespace numsan {

/// Of the tensors of one op.
inline constexpr int32_t kMostWatched = 63;

/// Bit i: tensor i is read because its value goes elsewhere. Of the first kMostWatched.
uint64_t watched(const TensorView* views, int32_t count, const DeviceQueue& queue) noexcept;

/// A scan for each bit of `watch`. Throws std::bad_alloc, as all here.
std::vector<DeviceScan> watching_scans(const TensorView* views, uint64_t watch, const DeviceQueue& queue,
                                       ScanTicket sequence, bool raises_gate, const ReplayBudget& replays);

/// The scans of an event's outputs: as many at a time as lie side by side, with all operands; or each of an op over
/// lists with its own. Valid as long as this and the event.
class OutputScans {
  public:
    /// In a graph all takes turns but parameters that are written, and gradients that a loss scaler looks at.
    OutputScans(const DeviceEvent& event, const ReplayBudget& replays);
    const std::vector<DeviceScan>& scans() const { return scans_; }

  private:
    void add(const DeviceEvent& event, int32_t begin, int32_t end, ScanTicket sequence, bool own_operands);

    const ReplayBudget replays_;
    std::vector<TensorView> operands_;
    std::vector<DeviceScan> scans_;
    size_t first_ = 0;
    int32_t count_ = 0;
    bool exact_ = false;
};

/// For Governor::spend(). Precondition: one scan at least.
int64_t cost_of(const DeviceScanner& scanner, const std::vector<DeviceScan>& scans) noexcept;

}  // namespace numsan
