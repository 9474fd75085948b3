// The fuzz targets. Each takes any bytes and throws when a promise of the code under test is broken.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace numsan::fuzz {

#define NUMSAN_FUZZ_TARGET(name) void fuzz_##name(std::string_view input);
#include "tests/fuzz/targets.def"
#undef NUMSAN_FUZZ_TARGET

/// An uncaught exception ends a fuzzer with its text; in a test it is a failure with its text.
inline void require(bool kept, const char* promise, std::string_view detail = {}) {
    if (!kept) throw std::logic_error(std::string(promise) + (detail.empty() ? "" : ": ") + std::string(detail));
}

/// Nothing that could move a terminal's cursor or begin another line: no control character of ECMA-48.
inline bool one_safe_line(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (c < 0x20 || c == 0x7f) return false;
        if (c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) - 0x80u < 0x20) return false;
    }
    return !text.empty();
}

}  // namespace numsan::fuzz
