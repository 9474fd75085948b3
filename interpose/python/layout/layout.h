// Offsets inside CPython's frames and code objects, from layouts.def or from the interpreter itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "interpose/python/api/api.h"

namespace numsan {

/// Byte offsets; -1 where the version has no such member.
struct PythonLayout {
    enum class Kind : uint8_t { Object, Pointer };
    Kind kind;
    int32_t thread_frame;
    int32_t cframe_frame;
    int32_t previous;
    int32_t code;
    int32_t instruction;
    int32_t owner;
    int32_t locals;
    int32_t code_file;
    int32_t code_name;
    int32_t code_qualname;
    int32_t code_first_line;
    int32_t code_bytes;
    int32_t ascii_data;
    int32_t other_data;
    int32_t kind_bit;
};

/// The layout of the running interpreter; nothing for a version that is not listed or a free-threaded build.
std::optional<PythonLayout> python_layout(const PythonApi& api);

template <class T>
T read_at(const void* base, int32_t offset) {
    return *reinterpret_cast<const T*>(static_cast<const char*>(base) + offset);
}

/// A pointer member, without the tag bits that 3.14 keeps in references.
inline const void* pointer_at(const void* base, int32_t offset) {
    return reinterpret_cast<const void*>(read_at<uintptr_t>(base, offset) & ~uintptr_t(7));
}

/// Reads without checks: for a layout that was checked.
struct TrustedMemory {
    template <class T>
    T read(const void* base, int32_t offset) const noexcept {
        return read_at<T>(base, offset);
    }
};

/// Where the characters of a str lie.
struct TextPlace {
    int32_t offset = 0;
    uint32_t width = 0;  ///< bytes a character: 1, 2 or 4; 0 for a representation that code objects do not use
    int64_t length = 0;
    bool ascii = false;
};

template <class Memory>
TextPlace text_place(const PythonLayout& layout, const void* str, Memory& memory) noexcept {
    constexpr int32_t kLength = 16;  // same in 3.10 to 3.14
    constexpr int32_t kState = 32;
    constexpr int64_t kLongest = 1 << 16;
    const auto length = memory.template read<int64_t>(str, kLength);
    const uint32_t state = memory.template read<uint32_t>(str, kState) >> layout.kind_bit;
    const uint32_t width = state & 7;
    const bool compact = state >> 3 & 1;
    const bool ascii = state >> 4 & 1;
    if (!compact || (width != 1 && width != 2 && width != 4) || length < 0 || length > kLongest) return {};
    return {ascii ? layout.ascii_data : layout.other_data, width, length, ascii};
}

/// The text of a str object, as UTF-8, read from its memory: no lock, no cache, nothing written. Empty for null and for
/// a string in a representation that code objects do not use.
std::string python_text(const PythonLayout& layout, const void* str);

}  // namespace numsan
