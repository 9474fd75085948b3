// Pieces of GitHub's markdown that show any text as it is.
#pragma once

#include <string>
#include <string_view>

namespace numsan::markdown {

/// GitHub's limit of a comment is 65,536 characters. Bytes are counted, which are no fewer, and the last lines have a
/// place.
inline constexpr size_t kMostOfComment = 65536 - 600;

/// Text outside of code: nothing in it is a mark, a link, a mention or HTML; names in backquotes stay code. One line.
std::string text(const std::string& words);

/// Text between tags of HTML, where marks mean nothing.
std::string in_html(const std::string& words);

/// Text as code inside a line or a cell of a table. Empty stays empty.
std::string code(const std::string& words);

/// Lines in a fence that none of them can end, with a newline at the end.
std::string fenced(const std::string& lines, const std::string& language);

}  // namespace numsan::markdown
