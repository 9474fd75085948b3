#include "host/kernels/manifest_reader.h"

#include <cstdio>
#include <utility>

namespace numsan {
namespace {

bool is_sign(char c) { return c != '\0' && std::string_view("[]{},=").find(c) != std::string_view::npos; }
bool is_of_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '+' || c == '.';
}
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string hex(char c) {
    char text[8];
    std::snprintf(text, sizeof text, "0x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    return text;
}

}  // namespace

void ManifestReader::step() {
    const char passed = text_[at_++];
    if (passed == '\n') {
        ++line_;
        column_ = 1;
        only_blanks_ = true;
    } else {
        ++column_;
        only_blanks_ = only_blanks_ && is_blank(passed);
    }
}

void ManifestReader::next() {
    while (at_ < text_.size() && (is_blank(at()) || at() == '#')) {
        if (at() != '#') {
            step();
            continue;
        }
        while (at_ < text_.size() && at() != '\n') step();
    }
    word_ = {ManifestWord::Kind::End, {}, line_, column_};
    begin_ = at_;
    begins_line_ = only_blanks_;
    if (at_ == text_.size()) return;
    const char first = at();
    if (is_sign(first)) {
        word_.kind = ManifestWord::Kind::Sign;
        word_.text = first;
        step();
    } else if (first == '"' || first == '\'') {
        read_text(first);
    } else if (is_of_name(first)) {
        word_.kind = ManifestWord::Kind::Name;
        for (; at_ < text_.size() && is_of_name(at()); step()) word_.text += at();
    } else {
        fail("byte " + hex(first) + " begins no word");
    }
}

void ManifestReader::read_text(char quote) {
    word_.kind = ManifestWord::Kind::Text;
    step();
    for (; at() != quote; step()) {
        if (at_ == text_.size() || at() == '\n') fail("a text has no end on its line");
        if (static_cast<unsigned char>(at()) < ' ') fail("byte " + hex(at()) + " in a text");
        if (quote == '"' && at() == '\\') {
            step();
            if (at() != '"' && at() != '\\') fail("of what a backslash may stand before only \\\" and \\\\ are known");
        }
        word_.text += at();
    }
    step();
}

ManifestWord ManifestReader::take() {
    ManifestWord taken = std::move(word_);
    next();
    return taken;
}

void ManifestReader::expect(char sign, const char* expected) {
    if (!word_.is(sign)) fail(std::string("expected ") + expected);
    next();
}

void ManifestReader::skip_to_table() {
    const auto begins = [&] { return only_blanks_ && at() == '[' && at(1) == '['; };
    if (word_.is('[') && begins_line_) {  // it has been read already, as what should not have come
        at_ = begin_;
        column_ = word_.column;
        only_blanks_ = true;
    }
    // Where it stands now nothing was good.
    if (begins() && at_ == failed_) step();
    while (at_ < text_.size() && !begins()) step();
    failed_ = at_;
    next();
}

}  // namespace numsan
