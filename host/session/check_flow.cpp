#include "host/session/check_flow.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace numsan {
namespace {

constexpr int kMostLines = 1 << 16;
constexpr int kMostContinued = 12;  ///< lines of one statement
constexpr size_t kMostFrames = 64;  ///< deeper stacks are cut at their outer end
constexpr std::string_view kLeaving[] = {"continue", "break", "return"};

struct Lines {
    int first = 0, last = 0;
    bool has(int line) const { return first <= line && line <= last; }
};

/// The lines of a source file, from 1, as far as this needs to know Python.
class Source {
  public:
    explicit Source(const std::string& file) {
        std::ifstream in(file);
        for (std::string text; int(lines_.size()) < kMostLines && std::getline(in, text);) lines_.push_back(text);
    }

    int count() const { return static_cast<int>(lines_.size()); }

    /// Without blanks around it and without a comment that is all of it.
    std::string_view text(int line) const {
        if (line < 1 || line > count()) return {};
        std::string_view whole = lines_[static_cast<size_t>(line) - 1];
        const size_t first = whole.find_first_not_of(" \t\r");
        if (first == std::string_view::npos || whole[first] == '#') return {};
        whole.remove_prefix(first);
        return whole.substr(0, whole.find_last_not_of(" \t\r") + 1);
    }
    int indent(int line) const { return static_cast<int>(text(line).data() - lines_[size_t(line) - 1].data()); }
    bool starts(int line, std::initializer_list<std::string_view> words) const {
        return std::any_of(words.begin(), words.end(),
                           [&](std::string_view word) { return text(line).starts_with(word); });
    }

    /// All lines of the statement, or of the head of the compound statement, that `line` belongs to.
    Lines statement(int line) const {
        Lines found{line, line};
        int open = 0;
        for (int i = line - 1; i >= 1 && i > line - kMostContinued; --i) {
            open += brackets(i);
            if (open > 0 || text(i).ends_with('\\')) found.first = i, open = 0;
        }
        found.last = end(found.first);
        return found;
    }

    /// The last line of the statement that begins on `first`.
    int end(int first) const {
        int open = 0;
        int last = first;
        for (int i = first; i <= count() && i < first + kMostContinued; ++i) {
            open += brackets(i);
            last = i;
            if (open <= 0 && !text(i).ends_with('\\')) break;
        }
        return last;
    }

    /// The lines below a head that are indented deeper.
    Lines block(const Lines& head) const {
        const int outer = indent(head.first);
        Lines found{head.last + 1, head.last};
        for (int i = head.last + 1; i <= count(); ++i) {
            if (text(i).empty()) continue;
            if (indent(i) <= outer) break;
            found.last = i;
        }
        return found;
    }

    /// The first line with text from `line` on; 0 at the end.
    int next(int line) const {
        for (int i = line; i <= count(); ++i) {
            if (!text(i).empty()) return i;
        }
        return 0;
    }

    /// The last line of a block that stands on the block's own level; 0 for an empty block.
    int last_statement(const Lines& block) const {
        const int first = next(block.first);
        int last = 0;
        for (int i = first; i != 0 && i <= block.last; i = next(end(i) + 1)) {
            if (indent(i) == indent(first)) last = i;
        }
        return last;
    }

  private:
    int brackets(int line) const {
        int open = 0;
        for (const char c : text(line))
            open += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
        return open;
    }

    std::vector<std::string> lines_;
};

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// The exception says that something is wrong; others, StopIteration among them, are ways to go on.
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

bool is_raise(std::string_view text) { return text == "raise" || text.starts_with("raise "); }

/// What belongs to a check that raises when it fails: its condition, and the block that ends in `raise`.
struct Check {
    Lines condition, block;
    bool has(int line) const { return condition.has(line) || block.has(line); }
    int last() const { return std::max(condition.last, block.last); }
};

std::optional<Check> raising_check(const Source& source, int line);

std::optional<Check> raising_branch(const Source& source, const Lines& head, const Lines& condition) {
    const std::string_view text = source.text(head.last);
    if (const size_t same = text.find(": raise "); same != std::string_view::npos)
        return raises_error(text.substr(same + 2)) ? std::optional(Check{condition, head}) : std::nullopt;
    const Lines block = source.block(head);
    const int last = source.last_statement(block);
    if (last != 0 && is_raise(source.text(last)) && raises_error(source.text(last))) return Check{condition, block};
    return std::nullopt;
}

/// `finite = torch.isfinite(loss).all()` and, soon after it, a check of that name.
std::optional<Check> check_of_name(const Source& source, const Lines& statement) {
    constexpr int kSoon = 6;
    const std::string_view text = source.text(statement.first);
    const size_t length = static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_name) - text.begin());
    if (length == 0 || !text.substr(length).starts_with(" = ")) return std::nullopt;
    for (int i = statement.last + 1; i <= statement.last + kSoon; ++i) {
        if (!source.starts(i, {"if ", "assert "})) continue;
        const std::string_view head = source.text(i);
        for (size_t at = head.find(text.substr(0, length)); at != std::string_view::npos;
             at = head.find(text.substr(0, length), at + 1)) {
            const bool whole = !is_name(head[at - 1]) && (at + length == head.size() || !is_name(head[at + length]));
            if (!whole) continue;
            std::optional<Check> check = raising_check(source, i);
            if (check) check->condition.first = statement.first;
            return check;
        }
    }
    return std::nullopt;
}

std::optional<Check> raising_check(const Source& source, int line) {
    const Lines statement = source.statement(line);
    if (source.starts(statement.first, {"assert ", "assert("})) return Check{statement, statement};
    if (!source.starts(statement.first, {"if ", "if(", "elif "})) return check_of_name(source, statement);
    if (std::optional<Check> check = raising_branch(source, statement, statement)) return check;
    const int after = source.next(source.block(statement).last + 1);
    const bool otherwise =
        after != 0 && source.starts(after, {"else:"}) && source.indent(after) == source.indent(statement.first);
    return otherwise ? raising_branch(source, {after, after}, statement) : std::nullopt;
}

/// The body of the innermost loop around a statement, or of its function.
Lines round_of(const Source& source, int line) {
    int inside = source.indent(source.statement(line).first);
    for (int i = source.statement(line).first - 1; i >= 1 && inside > 0; --i) {
        if (source.text(i).empty() || source.indent(i) >= inside) continue;
        inside = source.indent(i);
        if (source.starts(i, {"for ", "while ", "async for ", "def ", "async def "}))
            return source.block(source.statement(i));
    }
    return {1, source.count()};
}

/// A `try` with handlers that end the exception.
struct Try {
    Lines body;
    std::vector<Lines> handlers;
    bool leaves = true;  ///< each handler ends in continue, break or return
    int last = 0;        ///< of the whole statement
    bool handles(int line) const {
        return std::any_of(handlers.begin(), handlers.end(), [&](const Lines& one) { return one.has(line); });
    }
};

std::optional<Try> read_try(const Source& source, int line) {
    Try found;
    found.body = source.block({line, line});
    found.last = found.body.last;
    for (int i = source.next(found.last + 1); i != 0 && source.indent(i) == source.indent(line);
         i = source.next(found.last + 1)) {
        if (!source.starts(i, {"except", "else:", "finally:"})) break;
        const Lines head = source.statement(i);
        const Lines block = source.block(head);
        found.last = std::max(head.last, block.last);
        if (!source.starts(i, {"except"})) continue;
        const int end = source.last_statement(block);
        if (end != 0 && is_raise(source.text(end))) continue;
        const std::string_view text = source.text(end != 0 ? end : head.last);
        const bool leaves = std::any_of(std::begin(kLeaving), std::end(kLeaving), [&](std::string_view word) {
            return end != 0 ? text.starts_with(word) : text.ends_with(": " + std::string(word));
        });
        found.leaves = found.leaves && leaves;
        found.handlers.push_back({head.first, found.last});
    }
    return found.handlers.empty() ? std::nullopt : std::optional(found);
}

/// The innermost one around a statement of a function.
std::optional<Try> try_around(const Source& source, int line) {
    int inside = source.indent(source.statement(line).first);
    for (int i = source.statement(line).first - 1; i >= 1 && inside > 0; --i) {
        if (source.text(i).empty() || source.indent(i) >= inside) continue;
        inside = source.indent(i);
        if (source.starts(i, {"def ", "async def ", "class "})) return std::nullopt;
        if (!source.starts(i, {"try:"})) continue;
        if (std::optional<Try> found = read_try(source, i)) return found;
    }
    return std::nullopt;
}

bool learns(const Source& source, const Lines& lines, const Try* around) {
    for (int i = lines.first; i <= lines.last; ++i) {
        const bool left_out = around != nullptr && around->handles(i);
        if (!left_out && source.text(i).find(".backward(") != std::string_view::npos) return true;
    }
    return false;
}

/// What one frame of the check shows of it. `last`: the last line of the check there, or of the call that led to it;
/// `line`: of the next op in the same frame, 0 where the frame has gone.
enum class Shown { WentOn, Nothing, LeftOut, Handled };

/// Of a frame that catches nothing: the exception, or the op, has left it.
Shown shown_on_the_way(const Source& source, int last, int line) {
    if (line > last) return Shown::WentOn;
    return learns(source, {last + 1, round_of(source, last).last}, nullptr) ? Shown::LeftOut : Shown::Nothing;
}

Shown shown_where_it_is_caught(const Source& source, const Try& around, int last, int line) {
    if (around.handles(line)) return Shown::Handled;
    const int end = round_of(source, around.body.first - 1).last;
    const bool same_round = line > last && line <= end;
    if (same_round && (around.leaves || line <= around.body.last)) return Shown::WentOn;
    return learns(source, {last + 1, around.leaves ? end : around.body.last}, &around) ? Shown::LeftOut
                                                                                       : Shown::Nothing;
}

bool same_function(const SourceFrame& a, const SourceFrame& b) { return a.file == b.file && a.function == b.function; }

}  // namespace

AfterCheck after_check(const std::vector<SourceFrame>& check, const std::vector<SourceFrame>& next) {
    if (check.empty() || next.empty() || check.size() >= kMostFrames || next.size() >= kMostFrames)
        return AfterCheck::WentOn;
    if (!same_function(check.back(), next.back())) return AfterCheck::WentOn;
    std::optional<Check> raising;
    bool left_out = false;
    for (size_t k = 0; k < check.size(); ++k) {
        const SourceFrame& frame = check[k];
        const Source source(frame.file);
        if (frame.native || frame.line < 1 || frame.line > source.count()) return AfterCheck::WentOn;
        const size_t outwards = check.size() - k;
        const bool there = outwards <= next.size() && same_function(next[next.size() - outwards], frame);
        const int line = there ? next[next.size() - outwards].line : 0;
        Lines here = source.statement(frame.line);
        if (!raising) {
            raising = raising_check(source, frame.line);
            if (!raising && source.starts(here.first, {"return "})) continue;
            if (!raising) return AfterCheck::WentOn;
            if (raising->has(line)) return AfterCheck::Within;
            here.last = raising->last();
        }
        const std::optional<Try> around = try_around(source, frame.line);
        const Shown shown = around ? shown_where_it_is_caught(source, *around, here.last, line)
                                   : shown_on_the_way(source, here.last, line);
        if (shown == Shown::WentOn) return AfterCheck::WentOn;
        left_out = left_out || shown == Shown::LeftOut;
        if (around) return left_out || shown == Shown::Handled ? AfterCheck::Raised : AfterCheck::WentOn;
    }
    return AfterCheck::WentOn;
}

}  // namespace numsan
