#include "host/format/markdown.h"

#include <algorithm>

#include "host/format/xml.h"

namespace numsan::markdown {
namespace {

constexpr char kNoMention[] = "@&#8203;";  // a mention would send mail to somebody

/// The longest run of backquotes.
size_t longest_run(std::string_view words) {
    size_t longest = 0;
    size_t run = 0;
    for (const char c : words) {
        run = c == '`' ? run + 1 : 0;
        longest = std::max(longest, run);
    }
    return longest;
}

std::string escaped(std::string_view words) {
    constexpr std::string_view kMarks = "\\`*_{}[]<>()#+-!|~&:";
    std::string out;
    for (const char c : words) {
        if (c == '@') {
            out += kNoMention;
            continue;
        }
        if (kMarks.find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

}  // namespace

std::string text(const std::string& words) {
    std::string out;
    std::string_view left = words;
    while (!left.empty()) {
        const size_t open = left.find('`');
        const size_t close = open == std::string_view::npos ? open : left.find('`', open + 1);
        if (close == std::string_view::npos || close == open + 1) return out + escaped(left);
        out += escaped(left.substr(0, open)) + code(std::string(left.substr(open + 1, close - open - 1)));
        left.remove_prefix(close + 1);
    }
    return out;
}

std::string in_html(const std::string& words) {
    std::string out = xml_text(words);
    for (size_t at = 0; (at = out.find('@', at)) != std::string::npos; ++at) out.replace(at, 1, kNoMention);
    return out;
}

std::string code(const std::string& words) {
    if (words.empty()) return "";
    std::string inside;
    for (const char c : words) {
        if (c == '|') inside += '\\';  // GitHub splits cells before it looks for code
        inside += c;
    }
    const std::string marks(longest_run(inside) + 1, '`');
    const bool pad = inside.front() == '`' || inside.back() == '`' || (inside.front() == ' ' && inside.back() == ' ');
    return marks + (pad ? " " : "") + inside + (pad ? " " : "") + marks;
}

std::string fenced(const std::string& lines, const std::string& language) {
    const std::string marks(std::max<size_t>(longest_run(lines) + 1, 3), '`');
    return marks + language + "\n" + lines + (lines.ends_with('\n') ? "" : "\n") + marks + "\n";
}

}  // namespace numsan::markdown
