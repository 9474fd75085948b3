// Work of ours on torch's own pool of threads, where the program is sure to have made it already.
#pragma once

#include <cstdint>

#include "interpose/torch/describe/op_registry.h"

namespace numsan {

/// An op on host memory has just finished on this thread with an output of this many elements. Notes when that cannot
/// have happened without the pool.
void note_pool_use(const Operator& op, int64_t numel);

/// See ShareWork. False on a thread that has not used the pool with as many threads as it would have now, and inside of
/// an op's own parallel part. [MT]
bool share_work(void (*work)(void* data, int part, int parts), void* data);

}  // namespace numsan
