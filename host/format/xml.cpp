#include "host/format/xml.h"

namespace numsan {

std::string xml_text(std::string_view text) {
    constexpr std::string_view kReplacement = "\xef\xbf\xbd";
    std::string out;
    out.reserve(text.size() + text.size() / 16);
    for (size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const bool noncharacter = text.substr(i, 3) == "\xef\xbf\xbe" || text.substr(i, 3) == "\xef\xbf\xbf";
        if (noncharacter || (byte < 0x20 && byte != '\t' && byte != '\n')) {
            out += kReplacement;
            if (noncharacter) i += 2;
            continue;
        }
        switch (text[i]) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            default: out += text[i];
        }
    }
    return out;
}

}  // namespace numsan
