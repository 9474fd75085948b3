// The typography of text reports: colours, wrapped rows, grouped figures.
#pragma once

#include <string>
#include <string_view>

#include "host/options/options.h"

namespace numsan {

/// How text looks. `width` is in columns, 0 = never wrap. File names below `cwd` are shown relative to it.
struct TextStyle {
    bool color = false;
    int width = 0;
    std::string cwd;
};

/// Colour and width for a file descriptor: colour by `color`, and for Auto only on a terminal that can, without
/// NO_COLOR.
TextStyle detect_style(int fd, ColorOption color);

enum class Ink { Error, Warning, Info, Strong, Frame };

/// The ink of a severity's name; what no version writes looks like an error.
Ink severity_ink(const std::string& severity);

/// `text` in a colour, or as it is.
std::string inked(const std::string& text, Ink ink, const TextStyle& style);

/// Columns that UTF-8 text takes, one for each code point.
size_t columns(std::string_view text);

/// `text` and blanks up to `width` columns; nothing is cut.
std::string padded(std::string text, size_t width);

/// `   = label:   text`, wrapped at blanks to the style's width with the continuation under the text.
std::string row(const std::string& margin, const std::string& label, const std::string& text, const TextStyle& style);

/// Operator names (`aten::log`) in back quotes, unless they are already.
std::string quote_operators(const std::string& text);

/// 91234 -> "91 234". As wide as every integer of a document, signed and unsigned. [MT]
std::string grouped(__int128 count);

/// A value for people: "0", "0.5", "2.4e-04", "812.5". [MT]
std::string value_text(double value);

/// All its digits: "-91234".
std::string digits(__int128 count);

/// "3 zeros", "1 zero".
std::string counted(__int128 count, const std::string& singular, const std::string& plural);

}  // namespace numsan
