// The oracle as the host runs it.
#include "tests/cuda/reference.cuh"

namespace numsan::gpu {

Summary reference_scan(const TensorView& view) { return reference_scan_by(thrust::host, view); }

}  // namespace numsan::gpu
