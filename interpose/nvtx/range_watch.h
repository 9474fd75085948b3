// Ranges that a program names by NVTX, as each copy of NVTX in the process announces them.
#pragma once

#include <cstdint>

#include "interpose/nvtx/nvtx_abi.h"

namespace numsan {

/// The listener. None may throw. A name lives until the call returns: `domain:name` where the range is of a domain that
/// has a name, empty where the program gives none; `ignored`: the program's name for it is numsan:ignore.
struct RangeListener {
    /// A range of the calling thread; a pop ends the innermost of its domain.
    void (*push)(uint64_t domain, const char* name, bool ignored);
    void (*pop)(uint64_t domain);
    /// A range of the process, which may end on another thread. `id` is its own alone.
    void (*start)(uint64_t id, const char* name, bool ignored);
    void (*stop)(uint64_t id);
};

/// [MT] Listens to one copy of NVTX, see GetExportTable. False where that has not what we look for. `listener` stays.
/// To the program all is as with any tool: domains, registered strings and started ranges have handles of their own.
/// What push and pop return is what they return without one.
bool watch_nvtx(nvtx::GetExportTable get_export_table, const RangeListener& listener) noexcept;

}  // namespace numsan
