// Which scanner a session gets for tensors of a device.
#pragma once

#include <atomic>
#include <string>

#include "host/base/adapter_abi.h"
#include "host/base/device_scanner.h"

namespace numsan {

/// For the device of `first`, the first event with such a tensor. Null, and in `why` the reason in a user's words, when
/// it cannot be scanned. The scanner lives as long as the process. May throw std::bad_alloc.
DeviceScanner* make_device_scanner(const OpEvent& first, std::string& why);

/// Whether the tensors of a backend outside torch are in CUDA memory: found once, with the first of them that has
/// memory. Of the backends that torch's hook shows only one is not CUDA's. [MT]
class ForeignMemory {
  public:
    /// False when no address and no stream of the event may come to the CUDA scanner. Makes no call of the driver's but
    /// for that first tensor.
    bool leaves_to_cuda(const OpEvent& event) noexcept;
    bool leaves_to_cuda(const TensorView& tensor) noexcept;

  private:
    enum Answer : int { Unknown, InCuda, Elsewhere };

    std::atomic<int> answer_{Unknown};
};

}  // namespace numsan
