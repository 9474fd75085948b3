#include "host/session/check_flow.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace numsan {
namespace {

using Block = PythonSource::Block;
constexpr size_t kNone = PythonSource::kNone;
constexpr size_t kMostFrames = 64;  ///< deeper stacks are cut at their outer end

bool starts(const PythonStatement& statement, std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return statement.starts_with(word); });
}

/// Where `word` stands in a text on its own, from `from` on; npos: nowhere.
size_t find_word(std::string_view text, std::string_view word, size_t from = 0) {
    for (size_t at = text.find(word, from); at != std::string_view::npos; at = text.find(word, at + 1)) {
        const size_t end = at + word.size();
        if ((at == 0 || !is_name_part(text[at - 1])) && (end == text.size() || !is_name_part(text[end]))) return at;
    }
    return std::string_view::npos;
}

/// It may go on elsewhere than at the next statement.
bool leaves(const PythonStatement& statement) {
    return find_word(statement.text, "continue") != std::string::npos ||
           find_word(statement.text, "break") != std::string::npos ||
           find_word(statement.text, "return") != std::string::npos;
}

/// Of `raise ...`: the exception says that something is wrong; others, StopIteration among them, are ways to go on.
bool raises_error(std::string_view text) {
    text.remove_prefix(std::string_view("raise").size());
    const size_t first = text.find_first_not_of(' ');
    if (first == std::string_view::npos) return false;
    text = text.substr(first, text.find_first_of("( ", first) - first);
    std::string name(text.substr(text.rfind('.') + 1));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
    return name.ends_with("error") || name.ends_with("exception") || has("nan") || has("finite") || has("diverg") ||
           has("overflow");
}

/// A check that raises when it fails.
struct Check {
    Block own;          ///< from its condition to the end of the branch that raises
    Block passed = {};  ///< the branch of a check that passes, where it is before the one that raises
};

/// The branch below `head`, or behind it on its line, can only end in `raise` of an error.
bool branch_raises(const PythonSource& source, size_t head) {
    const auto& all = source.statements();
    if (const size_t same = all[head].text.find(": raise "); same != std::string::npos)
        return raises_error(std::string_view(all[head].text).substr(same + 2));
    const Block block = source.block(head);
    if (block.empty()) return false;
    size_t last = block.begin;
    for (size_t i = block.begin; i < block.end; ++i) {
        if (leaves(all[i])) return false;
        if (all[i].indent == all[block.begin].indent) last = i;
    }
    return all[last].starts_with("raise") && raises_error(all[last].text);
}

/// Of an `assert`, `if` or `elif`.
std::optional<Check> check_with_head(const PythonSource& source, size_t head) {
    const auto& all = source.statements();
    if (all[head].starts_with("assert")) return Check{{head, head + 1}};
    if (!starts(all[head], {"if", "elif"})) return std::nullopt;
    const Block block = source.block(head);
    if (branch_raises(source, head)) return Check{{head, block.end}};
    const size_t after = block.end;
    const bool otherwise =
        after < all.size() && all[after].starts_with("else") && all[after].indent == all[head].indent;
    if (!otherwise || !branch_raises(source, after)) return std::nullopt;
    return Check{{head, source.block(after).end}, block};
}

/// `finite = torch.isfinite(loss).all()` and, soon after it, a check of that name.
std::optional<Check> check_of_name(const PythonSource& source, size_t index) {
    constexpr size_t kSoon = 6;
    const auto& all = source.statements();
    const std::string_view text = all[index].text;
    const size_t length = static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_name_part) - text.begin());
    if (length == 0 || !text.substr(length).starts_with(" = ")) return std::nullopt;
    for (size_t i = index + 1; i < all.size() && i <= index + kSoon && all[i].indent >= all[index].indent; ++i) {
        if (!starts(all[i], {"if", "assert"})) continue;
        if (find_word(all[i].text, text.substr(0, length), all[i].text.find(' ')) == std::string::npos) continue;
        if (std::optional<Check> check = check_with_head(source, i)) {
            check->own.begin = index;
            return check;
        }
    }
    return std::nullopt;
}

std::optional<Check> raising_check(const PythonSource& source, size_t index) {
    const std::optional<Check> check = check_with_head(source, index);
    return check ? check : check_of_name(source, index);
}

/// The heads of the blocks around a statement, of its function only; the innermost first that `wanted` is true of.
template <class Wanted>
size_t find_around(const PythonSource& source, size_t index, Wanted&& wanted) {
    for (size_t head = source.head_of(index); head != kNone; head = source.head_of(head)) {
        if (wanted(head)) return head;
        if (starts(source.statements()[head], {"def", "async def", "class"})) return kNone;
    }
    return kNone;
}

bool is_loop(const PythonStatement& head) { return starts(head, {"for", "while", "async for"}); }

/// The body of the innermost loop around a statement, or of its function.
Block round_of(const PythonSource& source, size_t index) {
    const size_t head = find_around(source, index, [&](size_t i) {
        const PythonStatement& one = source.statements()[i];
        return is_loop(one) || starts(one, {"def", "async def"});
    });
    return head == kNone ? source.all() : source.block(head);
}

bool in_loop(const PythonSource& source, size_t index) {
    return find_around(source, index, [&](size_t i) { return is_loop(source.statements()[i]); }) != kNone;
}

/// A `try` with handlers that end the exception.
struct Try {
    Block body;
    std::vector<Block> handlers;
    bool leaves = true;  ///< each handler ends in continue, break or return
    size_t end = 0;      ///< of the whole statement
    bool handles(size_t index) const {
        return std::any_of(handlers.begin(), handlers.end(), [&](const Block& one) { return one.has(index); });
    }
};

/// `except:`, or of something else than what ends a program, a generator or an iteration.
bool catches_errors(std::string_view head) {
    constexpr std::string_view kOthers[] = {"KeyboardInterrupt", "SystemExit", "GeneratorExit", "StopIteration",
                                            "StopAsyncIteration"};
    std::string names(head.substr(0, find_word(head, "as")));
    for (const std::string_view other : kOthers) {
        const size_t at = find_word(names, other);
        if (at != std::string::npos) names.erase(at, other.size());
    }
    names.erase(0, std::string_view("except").size());
    const bool left = std::any_of(names.begin(), names.end(), is_name_part);
    return left || head.starts_with("except:");
}

std::optional<Try> read_try(const PythonSource& source, size_t index) {
    const auto& all = source.statements();
    Try found;
    found.body = source.block(index);
    found.end = found.body.end;
    for (size_t i = found.end; i < all.size() && all[i].indent == all[index].indent; i = found.end) {
        if (!starts(all[i], {"except", "else", "finally"})) break;
        found.end = source.block(i).end;
        if (!all[i].starts_with("except") || !catches_errors(all[i].text)) continue;
        const Block block = source.block(i);
        size_t last = i;
        for (size_t k = block.begin; k < block.end; ++k) {
            if (all[k].indent == all[block.begin].indent) last = k;
        }
        const bool raises =
            last == i ? find_word(all[i].text, "raise") != std::string::npos : all[last].starts_with("raise");
        if (raises) continue;
        found.leaves =
            found.leaves && (last == i ? leaves(all[i]) : starts(all[last], {"continue", "break", "return"}));
        found.handlers.push_back({i, block.end});
    }
    return found.handlers.empty() ? std::nullopt : std::optional(found);
}

/// The innermost one around a statement of a function.
std::optional<Try> try_around(const PythonSource& source, size_t index) {
    std::optional<Try> found;
    find_around(source, index, [&](size_t head) {
        if (source.statements()[head].starts_with("try")) found = read_try(source, head);
        return found.has_value();
    });
    return found;
}

/// A `backward()` follows, and nothing on the way to it may leave it out but an exception.
bool learns(const PythonSource& source, std::initializer_list<Block> parts) {
    const auto& all = source.statements();
    for (const Block& part : parts) {
        size_t conditional = part.begin;  // what is before this one runs under a condition, or some times
        for (size_t i = part.begin; i < part.end; ++i) {
            if (leaves(all[i])) return false;
            const Block below = source.block(i);
            if (!below.empty() && !starts(all[i], {"with", "async with", "try"}))
                conditional = std::max(conditional, below.end);
            const bool sure = i >= conditional && find_word(all[i].text, "if") == std::string::npos && !is_loop(all[i]);
            if (sure && all[i].text.find(".backward(") != std::string::npos) return true;
        }
    }
    return false;
}

/// What one frame of the check shows of it.
enum class Shown { WentOn, Nothing, LeftOut, Handled };

/// Of a frame that catches nothing: the exception, or the op, has left it. `end`: behind the check there, or the call
/// that led to it; `now`: the next op's statement in the same frame, kNone where the frame has gone.
Shown shown_on_the_way(const PythonSource& source, size_t index, size_t end, size_t now) {
    if (now != kNone && now >= end) return Shown::WentOn;
    return learns(source, {{end, round_of(source, index).end}}) ? Shown::LeftOut : Shown::Nothing;
}

Shown shown_where_it_is_caught(const PythonSource& source, const Try& around, size_t end, size_t now) {
    if (now != kNone && around.handles(now)) return Shown::Handled;
    const size_t round = round_of(source, around.body.begin - 1).end;
    const bool same_round = now != kNone && now >= end && now < round;
    if (same_round && (around.leaves || now < around.body.end)) return Shown::WentOn;
    const Block behind = around.leaves ? Block{around.end, round} : Block{};
    return learns(source, {{end, around.body.end}, behind}) ? Shown::LeftOut : Shown::Nothing;
}

bool same_function(const SourceFrame& a, const SourceFrame& b) { return a.file == b.file && a.function == b.function; }

/// The frame that `frame` number `k` of the check is, as the next op sees it; null: it has gone.
const SourceFrame* same_frame(const std::vector<SourceFrame>& check, size_t k, const std::vector<SourceFrame>& next) {
    const size_t outwards = check.size() - k;
    if (outwards > next.size()) return nullptr;
    const SourceFrame& found = next[next.size() - outwards];
    return same_function(found, check[k]) ? &found : nullptr;
}

/// Frame `k` or one outside it may have come to the same call once more.
bool comes_around(const std::vector<SourceFrame>& check, size_t k, PythonSources& sources) {
    for (; k < check.size(); ++k) {
        const std::shared_ptr<const PythonSource> source = sources.find(check[k].file);
        const size_t index = source != nullptr ? source->at(check[k].line) : kNone;
        if (index != kNone && in_loop(*source, index)) return true;
    }
    return false;
}

}  // namespace

AfterCheck after_check(const std::vector<SourceFrame>& check, const std::vector<SourceFrame>& next,
                       PythonSources& sources) {
    if (check.empty() || next.empty() || check.size() >= kMostFrames || next.size() >= kMostFrames)
        return AfterCheck::WentOn;
    if (!same_function(check.back(), next.back())) return AfterCheck::WentOn;
    std::optional<Check> raising;
    bool left_out = false;
    for (size_t k = 0; k < check.size(); ++k) {
        const SourceFrame& frame = check[k];
        const std::shared_ptr<const PythonSource> found = frame.native ? nullptr : sources.find(frame.file);
        const size_t index = found != nullptr ? found->at(frame.line) : kNone;
        if (index == kNone) return AfterCheck::WentOn;
        const PythonSource& source = *found;
        const SourceFrame* there = same_frame(check, k, next);
        const size_t now = there != nullptr ? source.at(there->line) : kNone;
        size_t end = index + 1;
        if (!raising) {
            raising = raising_check(source, index);
            if (!raising && source.statements()[index].starts_with("return")) continue;
            if (!raising) return AfterCheck::WentOn;
            if (raising->passed.has(now)) return AfterCheck::WentOn;
            if (raising->own.has(now) || now == index) return AfterCheck::Within;
            end = std::max(end, raising->own.end);
        } else if (now == index && !comes_around(check, k, sources)) {
            return AfterCheck::WentOn;  // it is the same call
        }
        const std::optional<Try> around = try_around(source, index);
        const Shown shown =
            around ? shown_where_it_is_caught(source, *around, end, now) : shown_on_the_way(source, index, end, now);
        if (shown == Shown::WentOn) return AfterCheck::WentOn;
        left_out = left_out || shown == Shown::LeftOut;
        if (around) return left_out || shown == Shown::Handled ? AfterCheck::Raised : AfterCheck::WentOn;
    }
    return AfterCheck::WentOn;
}

}  // namespace numsan
