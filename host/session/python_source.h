// The statements of a Python source file: where each begins and ends, how far it is indented, what it says.
#pragma once

#include <cctype>
#include <cstddef>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace numsan {

/// A character that names have, beyond ASCII left aside.
inline bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// One logical line: a statement, several with `;` between them, or the head of a compound statement.
struct PythonStatement {
    int first = 0, last = 0;  ///< lines, from 1
    int indent = 0;           ///< columns
    std::string text;         ///< on one line, without comments; strings are empty

    bool has(int line) const { return first <= line && line <= last; }
    bool starts_with(std::string_view word) const;  ///< a keyword, and not the beginning of a longer name
};

/// Indices are those of statements(); kNone stands for no statement.
class PythonSource {
  public:
    static constexpr size_t kNone = static_cast<size_t>(-1);
    /// `[begin, end)` in statements().
    struct Block {
        size_t begin = 0, end = 0;
        bool has(size_t index) const { return begin <= index && index < end; }
        bool empty() const { return begin >= end; }
    };

    /// Without statements where `text` is no Python: brackets or strings that do not end.
    explicit PythonSource(std::string_view text);

    const std::vector<PythonStatement>& statements() const { return statements_; }
    /// The statement that takes a line.
    size_t at(int line) const;
    /// What is indented deeper below a head.
    Block block(size_t head) const;
    /// The head of the block that a statement is in.
    size_t head_of(size_t index) const;
    Block all() const { return {0, statements_.size()}; }

  private:
    std::vector<PythonStatement> statements_;
};

/// Source files that were read; each once. Not thread-safe.
class PythonSources {
  public:
    /// Files that were changed after this time are none: the program runs what was there before.
    explicit PythonSources(std::time_t until) : until_(until) {}
    /// Null: no such file, no regular one, one of more than a megabyte, one that was changed, or no Python.
    std::shared_ptr<const PythonSource> find(const std::string& file);

  private:
    static constexpr size_t kMostFiles = 64;
    const std::time_t until_;
    std::map<std::string, std::shared_ptr<const PythonSource>> files_;
};

}  // namespace numsan
