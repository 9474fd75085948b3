// Marks on the time line of the tool that has NVTX in this process, as nsys does.
#pragma once

#include <cstdint>

namespace numsan {

/// A mark in the domain `numsan`.
struct ToolMark {
    uint32_t category;          ///< not 0
    const char* category_name;  ///< always the same for one category
    uint64_t payload;
    const char* message;  ///< UTF-8
};

/// Whether there is such a tool: the library that NVTX_INJECTION64_PATH names is none of ours. False where numsan was
/// built without NVTX's headers.
bool has_marking_tool() noexcept;

/// [MT] The first call loads the tool's library, where the program has not yet.
void mark_in_tool(const ToolMark& mark) noexcept;

}  // namespace numsan
