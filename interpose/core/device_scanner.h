// Which scanner a session gets for tensors of a device.
#pragma once

#include <atomic>
#include <string>

#include "host/core/adapter_abi.h"
#include "host/core/device_scanner.h"

namespace numsan {

/// For the device of `first`, the first event with such a tensor. Null, and in `why` the reason in a user's words, when
/// it cannot be scanned. The scanner and `storages` live as long as the process. May throw std::bad_alloc.
DeviceScanner* make_device_scanner(const StorageApi* storages, const OpEvent& first, std::string& why);

/// Whether the tensors of a backend of somebody's own are in CUDA memory: found once, with the first of them that has
/// memory. Of the backends that torch's hook shows only one is not CUDA's. [MT]
class ForeignMemory {
  public:
    /// False when no address and no stream of the event may come to the CUDA scanner. Makes no call of the driver's but
    /// for that first tensor.
    bool leaves_to_cuda(const OpEvent& event) noexcept;

  private:
    enum Answer : int { Unknown, InCuda, Elsewhere };
    bool leaves_to_cuda(const TensorView& tensor) noexcept;

    std::atomic<int> answer_{Unknown};
};

}  // namespace numsan
