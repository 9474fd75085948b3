// The store by which the ranks of a job found each other, as a Python program's torch.distributed has it.
#pragma once

#include "host/stacks/job_store.h"

namespace numsan {

/// Does nothing without Python, without torch.distributed, without a process group or where its store is no TCPStore;
/// and, before the interpreter ends, where the calling thread holds the interpreter's lock.
JobStore job_store_by_python() noexcept;

}  // namespace numsan
