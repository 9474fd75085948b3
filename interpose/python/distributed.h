// The rank that a Python program gave itself, by torch.distributed.init_process_group.
#pragma once

#include <optional>

#include "host/stacks/process_rank.h"

namespace numsan {

/// None without Python, without torch.distributed, or without a process group; and, before the interpreter
/// ends, where the calling thread holds the interpreter's lock.
std::optional<ProcessRank> rank_by_python(void (*on_own_thread)());

}  // namespace numsan
