// What Python calls through ctypes, so without the GIL. Nothing is thrown: where the driver refuses, the process ends.
// [MT]
#pragma once

#include <cstddef>
#include <cstdint>

#define FAKEGPU_API extern "C" __attribute__((visibility("default")))

/// Registers kernels, hooks and generators with torch; once, before anything else.
FAKEGPU_API void fakegpu_register();

FAKEGPU_API int fakegpu_device_count();
FAKEGPU_API int fakegpu_current_device();
FAKEGPU_API int fakegpu_in_forked_child();

/// Each task of a stream takes so long from now on, in microseconds; FAKEGPU_DELAY_US at the start.
FAKEGPU_API void fakegpu_set_delay(int microseconds);
/// The stream (0: the default one) runs nothing that it is given from now on, until the release of all.
FAKEGPU_API void fakegpu_hold(int device, int64_t stream);
FAKEGPU_API void fakegpu_release();
FAKEGPU_API void fakegpu_synchronize_all();

/// Bytes allocated by live storages of a device, rounded up to blocks.
FAKEGPU_API size_t fakegpu_memory_allocated(int device);
/// Blocks that went from one owner to the next, without the driver, since the start.
FAKEGPU_API size_t fakegpu_blocks_reused();
FAKEGPU_API void fakegpu_empty_cache();
/// Waits for all streams; see count_unequal_bytes.
FAKEGPU_API size_t fakegpu_unequal_bytes();
/// The bytes at an address of device memory as they are now, without waiting for any stream.
FAKEGPU_API void fakegpu_peek(const void* memory, void* to, size_t bytes);
