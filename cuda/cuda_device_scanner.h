// The DeviceScanner for CUDA devices.
#pragma once

#include <memory>

#include "host/core/adapter_abi.h"
#include "host/core/device_scanner.h"

namespace numsan {

/// Loads the driver if the process has not; without a usable one nothing is taken and reason() says why. CUDA is not
/// initialised, a device is touched at its first scan. `storages` (for as long as the scanner lives): small outputs
/// may wait for each other; null: everything is scanned at once. window(): gpu::kResults. Throws std::bad_alloc.
std::unique_ptr<DeviceScanner> make_cuda_scanner(const StorageApi* storages, const char* library = "libcuda.so.1");

/// Whether `data` is an address of a device, by the driver that the process has loaded; false without one. [MT]
bool is_cuda_memory(const void* data) noexcept;
/// Whether it is memory of the host that devices write by themselves: allocated pinned, or registered. [MT]
bool is_pinned_memory(const void* data) noexcept;

}  // namespace numsan
