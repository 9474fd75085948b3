// Looks into regions that torch.compile made kernels of.
#pragma once

#include "interpose/python/api/api.h"

namespace numsan {

/// Replaces the __call__ of what torch.compile hands graphs to where its backend is inductor, by a function that calls
/// the original. Of what it returns the results are looked at after each call and after its backward pass, in host
/// memory; where one is bad, the region's graph is run once more, op by op, on what the region was given, copied where
/// the graph writes, and torch.ops.numsan.compiled_region says which results go together. A finder on sys.meta_path,
/// which finds nothing, waits for that class and is gone with the import after it. The results of a package that
/// AOTInductor made are looked at in the same way; it has no graph.
/// Takes the interpreter's lock. False when Python would not have it.
bool look_into_compiled_regions(const PythonApi& api);

}  // namespace numsan
