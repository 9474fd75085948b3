// The kernels of the fatbin: a scan and a look per size of table.
#include "cuda/kernel/look_body.cuh"
#include "cuda/kernel/scan_body.cuh"

namespace numsan::gpu {

// Registers for so many blocks of 256 threads on an SM; compute capability 7.5 holds no more than four.
#define NUMSAN_KERNEL(name, body, Table, blocks_per_sm)                                        \
    extern "C" __global__ void __launch_bounds__(int(kBlockThreads), int(blocks_per_sm))       \
        name(const __grid_constant__ Table table) {                                            \
        __shared__ BlockShared shared;                                                         \
        body(TableView{table.header, table.items, table.dims}, blockIdx.x, gridDim.x, shared); \
    }

NUMSAN_KERNEL(numsan_scan_small, scan_body, ScanTableSmall, kBlocksPerSm)
NUMSAN_KERNEL(numsan_scan_large, scan_body, ScanTableLarge, kBlocksPerSm)
NUMSAN_KERNEL(numsan_look_small, look_body, ScanTableSmall, kLookBlocksPerSm)
NUMSAN_KERNEL(numsan_look_large, look_body, ScanTableLarge, kLookBlocksPerSm)

}  // namespace numsan::gpu
