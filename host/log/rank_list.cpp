#include "host/log/rank_list.h"

#include <charconv>
#include <optional>

namespace numsan {
namespace {

/// How many ranks from `first` on follow each other at one distance, and that distance.
struct Run {
    size_t length = 1;
    int64_t distance = 1;
};

Run run_at(const std::vector<int64_t>& ranks, size_t first) {
    Run run;
    if (first + 1 >= ranks.size()) return run;
    run.distance = ranks[first + 1] - ranks[first];
    if (run.distance < 1) return {};
    while (first + run.length < ranks.size() &&
           ranks[first + run.length] - ranks[first + run.length - 1] == run.distance)
        ++run.length;
    constexpr size_t kFewest = 4;  // what is further apart is listed
    if (run.distance != 1 && run.length < kFewest) return {};
    return run;
}

/// A number at the beginning of the text, which is taken off.
std::optional<int64_t> take_number(std::string_view& text) {
    constexpr int64_t kLargest = 1 << 30;  // sums of them stay far from what the type holds
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 0 || value > kLargest) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return value;
}

bool take(std::string_view& text, std::string_view mark) {
    if (!text.starts_with(mark)) return false;
    text.remove_prefix(mark.size());
    return true;
}

}  // namespace

std::string rank_list(const std::vector<int64_t>& ranks) {
    std::string out;
    for (size_t i = 0; i < ranks.size();) {
        const Run run = run_at(ranks, i);
        out += (out.empty() ? "" : ", ") + std::to_string(ranks[i]);
        if (run.length > 1) out += "-" + std::to_string(ranks[i + run.length - 1]);
        if (run.length > 1 && run.distance != 1) out += ":" + std::to_string(run.distance);
        i += run.length;
    }
    return out;
}

std::vector<int64_t> ranks_of_list(std::string_view text, size_t most) {
    std::vector<int64_t> ranks;
    while (!text.empty()) {
        const std::optional<int64_t> first = take_number(text);
        if (!first) return {};
        int64_t last = *first;
        int64_t distance = 1;
        if (take(text, "-")) {
            const std::optional<int64_t> end = take_number(text);
            if (!end || *end < *first) return {};
            last = *end;
            if (take(text, ":")) {
                const std::optional<int64_t> step = take_number(text);
                if (!step || *step < 1) return {};
                distance = *step;
            }
        }
        if (static_cast<uint64_t>(last - *first) / static_cast<uint64_t>(distance) >= most - ranks.size()) return {};
        for (int64_t rank = *first; rank <= last; rank += distance) ranks.push_back(rank);
        if (!text.empty() && (!take(text, ", ") || text.empty())) return {};
    }
    return ranks;
}

}  // namespace numsan
