// The words of a file that describes kernels. It is TOML, and no more of it than such a file needs (decision 62 says
// why no library reads it).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace numsan {

/// What is wrong with a file, and where.
struct ManifestError {
    std::string what;
    int line, column;  ///< from 1
};

/// One of them, and where it begins.
struct ManifestWord {
    enum class Kind : uint8_t {
        Sign,  ///< one of [ ] { } , =
        Name,  ///< letters, digits, _ and -, or a number
        Text,  ///< between quotes
        End,
    };
    Kind kind = Kind::End;
    std::string text = {};
    int line = 1, column = 1;

    bool is(char sign) const { return kind == Kind::Sign && text[0] == sign; }
};

/// Reads one word after the other; comments and blanks are passed over. Throws ManifestError and std::bad_alloc.
class ManifestReader {
  public:
    /// At no word yet: next() goes on to the first one.
    explicit ManifestReader(std::string_view text) : text_(text) {
        if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);  // what some editors begin a file with
    }

    const ManifestWord& word() const { return word_; }
    /// The word, and goes on to the next one.
    ManifestWord take();
    /// The word is that sign, and goes on; an error that says what was expected else.
    void expect(char sign, const char* expected);
    /// Goes on to the next line that begins with "[[", blanks aside, or to the end.
    void skip_to_table();
    void next();
    [[noreturn]] void fail(const std::string& what) const { throw ManifestError{what, word_.line, word_.column}; }

  private:
    void read_text(char quote);
    char at(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
    void step();

    std::string_view text_;
    size_t at_ = 0, begin_ = 0;  ///< behind the word, and where it begins
    int line_ = 1, column_ = 1;
    bool only_blanks_ = true, begins_line_ = true;  ///< up to here on this line, and up to the word
    size_t failed_ = ~size_t(0);                    ///< where skip_to_table() went last
    ManifestWord word_;
};

}  // namespace numsan
