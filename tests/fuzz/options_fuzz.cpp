// The option string: what is read is what each piece says, a complaint changes nothing, what is printed is read again.
#include <algorithm>

#include "host/options/nearest.h"
#include "host/options/options.h"
#include "tests/fuzz/targets.h"

namespace numsan::fuzz {
namespace {

std::string printed(const Options& options) {
    std::string out;
    for (const auto& [key, value] : non_default(options)) out += (out.empty() ? "" : ":") + key + "=" + value;
    return out;
}

/// What a complaint about `key` must contain.
std::string named(std::string_view key) {
    const bool plain =
        key.size() <= 100 && std::all_of(key.begin(), key.end(), [](char c) { return c >= ' ' && c <= '~'; });
    return "option '" + (plain ? std::string(key) + "'" : "");
}

void one_piece(std::string_view piece, Options& options, const std::vector<std::string>& complaints, size_t& refused) {
    if (piece.empty()) return;
    const size_t equals = std::min(piece.find('='), piece.size());
    const std::string_view key = piece.substr(0, equals);
    const std::string before = printed(options);
    const auto complaint = set_option(options, key, piece.substr(std::min(equals + 1, piece.size())));
    if (!complaint) return;
    require(printed(options) == before, "a bad piece changes nothing", piece);
    require(refused < complaints.size() && complaints[refused].starts_with(*complaint), "complaints are in order",
            *complaint);
    require(complaint->find(named(key)) != std::string::npos, "a complaint names the key", *complaint);
    require(one_safe_line(complaints[refused]), "a complaint is one safe line", complaints[refused]);
    ++refused;
}

void check_parse(std::string_view text) {
    Options options;
    std::vector<std::string> complaints;
    parse(text, options, complaints);

    Options stepwise;
    size_t refused = 0;
    for (std::string_view rest = text;;) {
        const size_t end = std::min(rest.find(':'), rest.size());
        one_piece(rest.substr(0, end), stepwise, complaints, refused);
        if (end == rest.size()) break;
        rest.remove_prefix(end + 1);
    }
    require(refused == complaints.size(), "every complaint has its piece");
    require(printed(stepwise) == printed(options), "the whole is its pieces", printed(options));

    Options again;
    std::vector<std::string> further;
    parse(printed(options), again, further);
    require(further.empty(), "what is printed is accepted", further.empty() ? "" : further.front());
    require(printed(again) == printed(options), "printed options are read back equal", printed(options));
}

void check_paths(std::string_view pattern, std::string_view names) {
    const auto slashes = [](std::string_view text) { return std::count(text.begin(), text.end(), '/'); };
    const PathFacts facts{4711, 3, std::string(names), std::string(names)};
    const std::string path = expand_path(pattern, facts);
    require(slashes(path) == slashes(pattern), "a name adds no folder to a path", path);
    require(pattern.find('%') != std::string_view::npos || path == pattern, "a path without escapes stays", path);
}

void check_nearest(std::string_view a, std::string_view b) {
    const size_t distance = edit_distance(a, b);
    require(distance == edit_distance(b, a), "distances are symmetric");
    require(distance <= std::max(a.size(), b.size()), "a distance is at most the longer word");
    require(edit_distance(a, a) == 0, "a word is at no distance of itself");
    require(nearest(a, {std::string(b), std::string(a)}) == (distance == 0 ? b : a), "the word itself is the nearest");
}

}  // namespace

void fuzz_options(std::string_view text) {
    check_parse(text);
    const size_t half = std::min(text.find(':'), text.size());
    check_paths(text.substr(0, half), text.substr(half));
    check_nearest(text.substr(0, half), text.substr(half));
}

}  // namespace numsan::fuzz
