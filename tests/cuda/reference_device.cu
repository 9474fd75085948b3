// The oracle as the device runs it: compiled by nvcc so that it stays fit for it.
#include "tests/cuda/reference.cuh"

namespace numsan::gpu {

Summary reference_scan_on_device(const TensorView& view) { return reference_scan_by(thrust::device, view); }

}  // namespace numsan::gpu
