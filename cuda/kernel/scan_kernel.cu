// The kernels of the fatbin: one per size of table.
#include "cuda/kernel/scan_body.cuh"

namespace numsan::gpu {

// Registers for kBlocksPerSm blocks of 256 threads on an SM; compute capability 7.5 holds no more than four.
#define NUMSAN_SCAN_KERNEL(name, Table)                                                             \
    extern "C" __global__ void __launch_bounds__(int(kBlockThreads), int(kBlocksPerSm))             \
        name(const __grid_constant__ Table table) {                                                 \
        __shared__ BlockShared shared;                                                              \
        scan_body(TableView{table.header, table.items, table.dims}, blockIdx.x, gridDim.x, shared); \
    }

NUMSAN_SCAN_KERNEL(numsan_scan_small, ScanTableSmall)
NUMSAN_SCAN_KERNEL(numsan_scan_large, ScanTableLarge)

}  // namespace numsan::gpu
