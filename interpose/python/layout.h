// Offsets inside CPython's frames and code objects, from layouts.def or from the interpreter itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "interpose/python/api.h"

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

/// The text of a str object, as UTF-8, read from its memory: no lock, no cache, nothing written. Empty for null and for
/// a string in a representation that code objects do not use.
std::string python_text(const PythonLayout& layout, const void* str);

}  // namespace numsan
