#include "host/session/python_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <utility>

namespace numsan {
namespace {

constexpr off_t kLargestSource = 1 << 20;
constexpr int kTab = 8;

/// Splits a text into logical lines, as Python's tokenizer does.
class Splitter {
  public:
    explicit Splitter(std::string_view text) : text_(text) {}

    /// False: something that was opened does not end.
    bool split(std::vector<PythonStatement>& statements) {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '\n') {
                end_of_line(statements);
            } else if (c == '#') {
                at_ = std::min(text_.find('\n', at_), text_.size());
            } else if (c == '"' || c == '\'') {
                if (!string(c)) return false;
            } else if (c == '\\' && next_is_newline()) {
                at_ = text_.find('\n', at_) + 1;
                ++line_;
                add(' ');
            } else {
                depth_ += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
                if (depth_ < 0) return false;
                add(c == '\t' || c == '\r' || c == '\f' ? ' ' : c, c == '\t' ? kTab : 1);
                ++at_;
            }
        }
        if (depth_ > 0) return false;
        finish(statements);
        return true;
    }

  private:
    bool next_is_newline() const { return text_.substr(at_ + 1, 1) == "\n" || text_.substr(at_ + 1, 2) == "\r\n"; }

    void add(char c, int columns = 1) {
        if (c == ' ' && now_.text.empty()) {
            column_ = columns == 1 ? column_ + 1 : (column_ / kTab + 1) * kTab;
            return;
        }
        if (now_.text.empty()) {
            now_.first = line_;
            now_.indent = column_;
        }
        if (c != ' ' || now_.text.back() != ' ') now_.text += c;
    }

    void end_of_line(std::vector<PythonStatement>& statements) {
        ++at_;
        if (depth_ == 0)
            finish(statements);
        else
            add(' ');
        ++line_;
    }

    void finish(std::vector<PythonStatement>& statements) {
        now_.last = line_;
        while (!now_.text.empty() && now_.text.back() == ' ') now_.text.pop_back();
        if (!now_.text.empty()) statements.push_back(std::move(now_));
        now_ = {};
        column_ = 0;
    }

    /// A backslash keeps the quote behind it from ending the string, in raw strings, too.
    bool string(char quote) {
        const bool triple = text_.substr(at_, 3) == std::string(3, quote);
        add(quote);
        add(quote);
        at_ += triple ? 3 : 1;
        for (; at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            if (c == '\n') {
                if (!triple) return false;
                ++line_;
            } else if (c == '\\') {
                ++at_;
                if (text_.substr(std::min(at_, text_.size()), 2) == "\r\n") ++at_;
                if (at_ < text_.size() && text_[at_] == '\n') ++line_;
            } else if (c == quote && (!triple || text_.substr(at_, 3) == std::string(3, quote))) {
                at_ += triple ? 3 : 1;
                return true;
            }
        }
        return false;
    }

    std::string_view text_;
    size_t at_ = 0;
    int line_ = 1, column_ = 0, depth_ = 0;
    PythonStatement now_;
};

}  // namespace

bool PythonStatement::starts_with(std::string_view word) const {
    return text.starts_with(word) && (text.size() == word.size() || !is_name_part(text[word.size()]));
}

PythonSource::PythonSource(std::string_view text) {
    if (!Splitter(text).split(statements_)) statements_.clear();
}

size_t PythonSource::at(int line) const {
    const auto after = std::upper_bound(statements_.begin(), statements_.end(), line,
                                        [](int l, const PythonStatement& s) { return l < s.first; });
    if (after == statements_.begin() || !std::prev(after)->has(line)) return kNone;
    return static_cast<size_t>(after - statements_.begin()) - 1;
}

PythonSource::Block PythonSource::block(size_t head) const {
    size_t end = head + 1;
    while (end < statements_.size() && statements_[end].indent > statements_[head].indent) ++end;
    return {head + 1, end};
}

size_t PythonSource::head_of(size_t index) const {
    for (size_t i = index; i-- > 0;) {
        if (statements_[i].indent < statements_[index].indent) return i;
    }
    return kNone;
}

std::shared_ptr<const PythonSource> PythonSources::find(const std::string& file) {
    if (const auto known = files_.find(file); known != files_.end()) return known->second;
    if (files_.size() >= kMostFiles) files_.clear();
    std::shared_ptr<const PythonSource>& found = files_[file];
    struct stat about {};
    const bool readable = stat(file.c_str(), &about) == 0 && S_ISREG(about.st_mode) &&
                          about.st_size <= kLargestSource && about.st_mtime <= until_;
    if (!readable) return nullptr;
    std::string text(static_cast<size_t>(about.st_size), '\0');
    std::ifstream in(file, std::ios::binary);
    if (!in.read(text.data(), about.st_size)) return nullptr;
    auto source = std::make_shared<const PythonSource>(text);
    if (!source->statements().empty()) found = std::move(source);
    return found;
}

}  // namespace numsan
