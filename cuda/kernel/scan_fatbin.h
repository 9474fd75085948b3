// The compiled scan kernels, for cuModuleLoadData / cuLibraryLoadData. Names and parameters: cuda/kernel/scan_table.h.
// Only in builds with NUMSAN_CUDA.
#pragma once

#include <cstdint>

extern "C" {
extern const unsigned char numsan_scan_fatbin[];
extern const uint64_t numsan_scan_fatbin_size;
}
