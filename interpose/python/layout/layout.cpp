// Picks the layout of the running interpreter and decodes its strings.
#include "interpose/python/layout/layout.h"

#include <cstring>

namespace numsan {
namespace {

struct Row {
    int minor;
    PythonLayout layout;
};

constexpr Row kRows[] = {
#define NUMSAN_PYTHON_LAYOUT(minor, kind, ...) {minor, {PythonLayout::Kind::kind, __VA_ARGS__}},
#define NUMSAN_PYTHON_PUBLISHED(...)
#include "interpose/python/layout/layouts.def"
#undef NUMSAN_PYTHON_LAYOUT
#undef NUMSAN_PYTHON_PUBLISHED
};

/// Indexes into the published words.
struct Published {
    int minor;
    int thread_frame, previous, code, instruction, locals, owner;
    int file, name, qualname, first_line, bytes;
    int32_t ascii_data, other_data, kind_bit;
};

constexpr Published kPublished[] = {
#define NUMSAN_PYTHON_LAYOUT(...)
#define NUMSAN_PYTHON_PUBLISHED(...) {__VA_ARGS__},
#include "interpose/python/layout/layouts.def"
#undef NUMSAN_PYTHON_LAYOUT
#undef NUMSAN_PYTHON_PUBLISHED
};

std::optional<PythonLayout> read_published(const Published& at, const void* runtime) {
    if (!runtime || std::memcmp(runtime, "xdebugpy", 8) != 0) return std::nullopt;
    const auto* words = static_cast<const uint64_t*>(runtime);
    if ((words[1] >> 16) != uint64_t(0x0300 | at.minor) || words[2] != 0) return std::nullopt;
    bool plausible = true;
    auto offset = [&](int index) {
        plausible = plausible && words[index] < 4096;
        return static_cast<int32_t>(words[index]);
    };
    const PythonLayout layout{PythonLayout::Kind::Pointer,
                              offset(at.thread_frame),
                              -1,
                              offset(at.previous),
                              offset(at.code),
                              offset(at.instruction),
                              offset(at.owner),
                              offset(at.locals),
                              offset(at.file),
                              offset(at.name),
                              offset(at.qualname),
                              offset(at.first_line),
                              offset(at.bytes),
                              at.ascii_data,
                              at.other_data,
                              at.kind_bit};
    return plausible ? std::optional(layout) : std::nullopt;
}

void append_utf8(std::string& text, uint32_t c) {
    if (c < 0x80) {
        text += char(c);
    } else if (c < 0x800) {
        text += {char(0xc0 | c >> 6), char(0x80 | (c & 0x3f))};
    } else if (c >= 0xd800 && c < 0xe000) {
        text += "\xef\xbf\xbd";  // a lone surrogate has no UTF-8
    } else if (c < 0x10000) {
        text += {char(0xe0 | c >> 12), char(0x80 | (c >> 6 & 0x3f)), char(0x80 | (c & 0x3f))};
    } else {
        text += {char(0xf0 | c >> 18), char(0x80 | (c >> 12 & 0x3f)), char(0x80 | (c >> 6 & 0x3f)),
                 char(0x80 | (c & 0x3f))};
    }
}

}  // namespace

std::optional<PythonLayout> python_layout(const PythonApi& api) {
    if (sizeof(void*) != 8 || python_free_threaded(api)) return std::nullopt;
    const int minor = python_minor(api);
    for (const Row& row : kRows) {
        if (row.minor == minor) return row.layout;
    }
    for (const Published& row : kPublished) {
        if (row.minor == minor) return read_published(row, api.runtime);
    }
    return std::nullopt;
}

std::string python_text(const PythonLayout& layout, const void* str) {
    if (!str) return {};
    const TrustedMemory memory;
    const TextPlace at = text_place(layout, str, memory);
    const char* const data = static_cast<const char*>(str) + at.offset;
    if (at.ascii) return std::string(data, size_t(at.length));
    std::string text;
    for (int64_t i = 0; i < at.length; ++i) {
        if (at.width == 1) append_utf8(text, read_at<uint8_t>(data + i, 0));
        if (at.width == 2) append_utf8(text, read_at<uint16_t>(data + 2 * i, 0));
        if (at.width == 4) append_utf8(text, read_at<uint32_t>(data + 4 * i, 0));
    }
    return text;
}

}  // namespace numsan
