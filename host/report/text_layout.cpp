// Colours, wrapping and figures for text reports.
#include "host/report/text_layout.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "host/log/format.h"

namespace numsan {
namespace {

constexpr size_t kLabelWidth = 11;  // "categories:" would be the longest label

const char* escape_code(Ink ink) {
    switch (ink) {
        case Ink::Error: return "\x1b[1;31m";
        case Ink::Warning: return "\x1b[1;33m";
        case Ink::Info: return "\x1b[1;36m";
        case Ink::Strong: return "\x1b[1m";
        case Ink::Frame: return "\x1b[1;34m";
    }
    return "";
}

bool set(const char* name) {
    const char* value = std::getenv(name);
    return value && *value;
}

bool terminal_can(int fd) {
    const char* term = std::getenv("TERM");
    return isatty(fd) == 1 && !(term && std::strcmp(term, "dumb") == 0);
}

bool operator_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ':' ||
           c == '.';
}

}  // namespace

TextStyle detect_style(int fd, ColorOption color) {
    TextStyle style;
    winsize size{};
    if (isatty(fd) == 1 && ioctl(fd, TIOCGWINSZ, &size) == 0) style.width = size.ws_col;
    const bool automatic = terminal_can(fd) && !set("NO_COLOR");
    style.color = color == ColorOption::Always || (color == ColorOption::Auto && automatic);
    return style;
}

std::string digits(__int128 count) {
    std::string out;
    __int128 rest = count;
    do {
        const int digit = static_cast<int>(rest % 10);  // of the sign of `rest`: the lowest number has no opposite
        out.insert(out.begin(), static_cast<char>('0' + (digit < 0 ? -digit : digit)));
        rest /= 10;
    } while (rest != 0);
    return count < 0 ? "-" + out : out;
}

std::string grouped(__int128 count) {
    std::string out = digits(count);
    const size_t sign = count < 0 ? 1 : 0;
    for (size_t at = out.size(); at > sign + 3;) {
        at -= 3;
        out.insert(at, " ");
    }
    return out;
}

std::string value_text(double value) {
    if (value == 0) return "0";
    const double magnitude = std::fabs(value);
    if (magnitude >= 1e-3 && magnitude < 1e6) return number(value, 6);
    const std::string text = scientific(value, 5);
    const size_t exponent = text.find('e');
    size_t end = exponent;
    while (end >= 2 && text[end - 1] == '0' && text[end - 2] != '.') --end;
    return exponent == std::string::npos ? text : text.substr(0, end) + text.substr(exponent);
}

Ink severity_ink(const std::string& severity) {
    return severity == "warning" ? Ink::Warning : severity == "info" ? Ink::Info : Ink::Error;
}

std::string inked(const std::string& text, Ink ink, const TextStyle& style) {
    return style.color ? escape_code(ink) + text + "\x1b[0m" : text;
}

size_t columns(std::string_view text) {
    size_t count = 0;
    for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    return count;
}

std::string padded(std::string text, size_t width) {
    const size_t used = columns(text);
    if (used < width) text.append(width - used, ' ');
    return text;
}

std::string row(const std::string& margin, const std::string& label, const std::string& text, const TextStyle& style) {
    const std::string head = margin + " " + inked("=", Ink::Frame, style) + " " + padded(label, kLabelWidth - 1);
    const size_t indent = columns(margin) + 3 + kLabelWidth - 1;
    const size_t width = style.width > 0 ? static_cast<size_t>(style.width) : 0;
    if (width == 0 || indent + columns(text) <= width) return head + text + "\n";
    std::string out = head;
    size_t used = indent;
    size_t start = 0;
    while (start < text.size()) {
        size_t end = text.find(' ', start);
        if (end == std::string::npos) end = text.size();
        const size_t length = columns(std::string_view(text).substr(start, end - start));
        if (used > indent && used + length > width) {
            while (out.back() == ' ') out.pop_back();
            out += "\n" + std::string(indent, ' ');
            used = indent;
        }
        out += text.substr(start, end - start);
        used += length;
        for (start = end; start < text.size() && text[start] == ' '; ++start, ++used) out += ' ';
    }
    return out + "\n";
}

std::string quote_operators(const std::string& text) {
    std::string out;
    bool quoted = false;
    for (size_t i = 0; i < text.size();) {
        if (text[i] == '`') quoted = !quoted;
        if (quoted || !operator_letter(text[i])) {
            out += text[i++];
            continue;
        }
        size_t end = i;
        while (end < text.size() && operator_letter(text[end])) ++end;
        std::string word = text.substr(i, end - i);
        i = end;
        std::string tail;
        while (!word.empty() && (word.back() == ':' || word.back() == '.')) {
            tail.insert(tail.begin(), word.back());
            word.pop_back();
        }
        const size_t colons = word.find("::");
        const char* quote = colons != std::string::npos && colons > 0 ? "`" : "";
        out.append(quote).append(word).append(quote).append(tail);
    }
    return out;
}

std::string counted(__int128 count, const std::string& singular, const std::string& plural) {
    return grouped(count) + " " + (count == 1 ? singular : plural);
}

}  // namespace numsan
