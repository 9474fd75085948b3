// NVTX ranges by which a program says that what happens inside is meant.
#pragma once

#include "interpose/nvtx/nvtx_abi.h"

namespace numsan {

inline constexpr char kIgnoredRange[] = "numsan:ignore";

/// The listener. None may throw; `begin` and `end` come in pairs.
struct IgnoredRangeListener {
    void (*begin)();  ///< a range that was pushed, on the thread that it is about
    void (*end)();
    void (*begin_everywhere)();  ///< a range that was started: it is the process's, and may end on another thread
    void (*end_everywhere)();
};

/// [MT] Listens to one copy of NVTX, see GetExportTable. False where that has not what we look for. `listener` stays.
/// To the program all is as without a tool: calls return what they return there, but for strings and ranges of the
/// name above.
bool watch_nvtx(nvtx::GetExportTable get_export_table, const IgnoredRangeListener& listener) noexcept;

}  // namespace numsan
