// The DeviceScanner for CUDA devices.
#pragma once

#include <cstdint>
#include <memory>

#include "host/base/device_scanner.h"

namespace numsan {

/// Loads the driver if the process has not; without a usable one nothing is taken and reason() says why. CUDA is not
/// initialised, a device is touched at its first scan. window(): gpu::kResults. Throws std::bad_alloc.
std::unique_ptr<DeviceScanner> make_cuda_scanner(const char* library = "libcuda.so.1");

/// Whether `data` is an address of a device, by the driver that the process has loaded; false without one. [MT]
bool is_cuda_memory(const void* data) noexcept;
/// Whether it is memory of the host that devices write by themselves: allocated pinned, or registered. [MT]
bool is_pinned_memory(const void* data) noexcept;

/// The number of the device that the calling thread uses; -1 without a driver or a context. [MT]
int16_t device_of_thread() noexcept;

/// Whether what the stream is given now goes into a graph, or cannot be asked about; `stream`: a handle of the
/// driver's. False without a driver. [MT]
bool is_captured(void* stream) noexcept;

}  // namespace numsan
