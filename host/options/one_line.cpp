// Replaces what a terminal would obey.
#include "host/options/one_line.h"

namespace numsan {
namespace {

unsigned char byte(std::string_view text, size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

}  // namespace

std::string one_line(std::string_view text, size_t longest) {
    size_t end = text.size();
    if (end > longest) {
        end = longest;
        while (end > 0 && longest - end < 3 && (byte(text, end) & 0xc0) == 0x80) --end;
    }
    std::string out;
    for (size_t i = 0; i < end; ++i) {
        const unsigned char c = byte(text, i);
        const bool c1 = c == 0xc2 && byte(text, i + 1) >= 0x80 && byte(text, i + 1) < 0xa0;
        out += c < 0x20 || c == 0x7f || c1 ? '?' : text[i];
        i += c1;
    }
    return end < text.size() ? out + "..." : out;
}

}  // namespace numsan
