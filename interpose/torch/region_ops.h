// What interpose/python/scripts/compiled_regions.py asks about regions that torch.compile made kernels of.
#pragma once

namespace numsan {

/// Defines torch.ops.numsan.bad_kinds(tensors), the kinds of values that are not finite in those in host memory
/// (KindSet; 0: there is none), and torch.ops.numsan.compiled_region(replayed, output), which computes nothing: the
/// hook sees an operator that writes `output`, a result of a region, and that was given `replayed`, the same result of
/// the region's graph run op by op. Both only where CoreApi::bad_kinds is there. May throw.
void define_region_ops();

}  // namespace numsan
