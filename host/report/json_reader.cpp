// read_report: what is not a report is refused with the byte where that shows.
#include "host/report/json_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "host/report/json_fields.h"
#include "host/report/json_writer.h"

namespace numsan {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMark = "numsan.report/";  ///< in all that numsan wrote as a report

/// Accepts everything; remembers where and why the parser gave up.
class ErrorPlace : public nlohmann::json_sax<Json> {
  public:
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t& digits) override {
        if (rounded_.empty() && digits.find_first_of(".eE") == std::string::npos) rounded_ = digits;
        return true;
    }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(std::size_t) override { return true; }
    bool key(string_t&) override { return true; }
    bool end_object() override { return true; }
    bool start_array(std::size_t) override { return true; }
    bool end_array() override { return true; }
    bool parse_error(std::size_t position, const std::string&, const Json::exception& error) override {
        byte_ = position;
        what_ = error.what();
        return false;
    }

    std::size_t byte() const { return byte_; }

    /// The first integer below INT64_MIN or above UINT64_MAX: the parser would round it. Empty when there is none.
    const std::string& rounded() const { return rounded_; }

    /// The library's reason without its own numbering and position.
    std::string reason() const {
        std::string_view text = what_;
        const size_t numbering = text.find("] ");
        if (numbering != std::string_view::npos) text.remove_prefix(numbering + 2);
        constexpr std::string_view kPosition = "parse error at ";
        const size_t colon = text.find(": ");
        if (text.starts_with(kPosition) && colon != std::string_view::npos) text.remove_prefix(colon + 2);
        return fields::clean(std::string(text));
    }

  private:
    std::size_t byte_ = 0;
    std::string what_;
    std::string rounded_;
};

ReadResult failure(const std::string& name, const std::string& reason) { return {Json(), name + ": " + reason, false}; }

ReadResult failure_at(const std::string& name, size_t byte, const std::string& reason) {
    return failure(name, "byte " + std::to_string(byte) + ": " + reason);
}

size_t offset_of(const std::string& text, std::string_view key) {
    const size_t at = text.find("\"" + std::string(key) + "\"");
    return at == std::string::npos ? 0 : at;
}

/// Where valid JSON goes beyond what the document can hold in bounded time and stack, and what is too much there.
struct Excess {
    size_t byte = 0;
    const char* what = nullptr;  ///< null: nothing
};

/// Copying and writing a document recurse: a deep one could exhaust the stack. Its objects keep the order of their keys
/// and are searched from the front: reading one takes the square of its keys. A report nests less than 10 deep and has
/// no object of 40 keys; a thousand keys of one object are read in about a millisecond.
constexpr int kDeepest = 64;
constexpr int kMostKeys = 1000;

/// Of text that is JSON.
Excess excess_of(std::string_view json) {
    std::array<int, kDeepest + 1> keys{};  // of the object at each depth
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < json.size(); ++i) {
        const char c = json[i];
        if (c == '"') quoted = !quoted;
        if (quoted && c == '\\') ++i;
        if (quoted) continue;
        if (c == ']' || c == '}') --depth;
        if (c == '[' || c == '{') {
            if (++depth > kDeepest) return {i, "nested deeper than any report is"};
            keys[depth] = 0;
        }
        if (c == ':' && ++keys[depth] > kMostKeys) return {i, "an object has more than 1000 keys"};
    }
    return {};
}

/// Makes the document, up to the first excess. What is skimmed becomes empty.
class Builder : public nlohmann::json_sax<Json> {
  public:
    explicit Builder(Skim skim) : skim_(skim) {}

    bool null() override { return put(nullptr); }
    bool boolean(bool value) override { return put(value); }
    bool number_integer(number_integer_t value) override { return put(value); }
    bool number_unsigned(number_unsigned_t value) override { return put(value); }
    bool number_float(number_float_t value, const string_t& digits) override {
        rounded_ = rounded_ || digits.find_first_of(".eE") == std::string::npos;
        return put(value);
    }
    bool string(string_t& value) override { return put(std::move(value)); }
    /// The same of text that stays where it is.
    bool text(std::string_view value) { return kept() ? put(std::string(value)) : true; }
    bool binary(binary_t&) override { return false; }
    bool start_object(std::size_t) override { return open(Json::object()); }
    bool end_object() override { return close(); }
    bool start_array(std::size_t) override { return open(Json::array()); }
    bool end_array() override { return close(); }
    bool key(string_t& value) override { return key_text(value); }
    bool key_text(std::string_view value) {
        Level& level = levels_.back();
        level.key.assign(value);
        return ++level.keys <= kMostKeys;
    }
    bool parse_error(std::size_t, const std::string&, const Json::exception&) override { return false; }

    Json take() { return std::move(root_); }

    /// An integer was rounded.
    bool rounded() const { return rounded_; }

  private:
    struct Level {
        Json* container;  ///< null: not kept
        std::string key;  ///< of an object: the last one
        int keys = 0;
    };

    bool left_out() const {
        const size_t depth = levels_.size();
        if (skim_ == Skim::Nothing || depth < 3) return false;
        const std::string& key = levels_.back().key;
        if (depth == 3 && skim_ == Skim::Values) {
            constexpr std::string_view kKept[] = {"location", "received", "sent", "collectives"};
            return levels_[0].key == "findings" &&
                   std::find(std::begin(kKept), std::end(kKept), key) == std::end(kKept);
        }
        if (depth == 3) return key == "history" || key == "chain" || key == "excerpt";
        return depth == 4 && key == "stack" && levels_[2].key == "forward";
    }

    template <typename Value>
    Json* keep(Value&& value) {
        if (levels_.empty()) {
            root_ = std::forward<Value>(value);
            return &root_;
        }
        Level& level = levels_.back();
        if (level.container == nullptr) return nullptr;
        if (level.container->is_array()) {
            level.container->push_back(std::forward<Value>(value));
            return &level.container->back();
        }
        return &((*level.container)[level.key] = std::forward<Value>(value));
    }

    bool kept() const { return levels_.empty() || levels_.back().container != nullptr; }

    template <typename Value>
    bool put(Value&& value) {
        if (kept()) keep(Json(std::forward<Value>(value)));
        return true;
    }

    bool open(Json empty) {
        if (levels_.size() == kDeepest) return false;
        const bool skipped = left_out();
        Json* made = kept() ? keep(std::move(empty)) : nullptr;
        if (made != nullptr && !skipped && made->is_object()) {
            // Members move where there is no room for more: a finding has over forty, most others less than eight.
            made->get_ref<Json::object_t&>().reserve(levels_.size() == 2 ? 48 : 8);
        }
        levels_.push_back({skipped ? nullptr : made, {}, 0});
        return true;
    }

    bool close() {
        levels_.pop_back();
        return true;
    }

    Skim skim_;
    bool rounded_ = false;
    Json root_;
    std::vector<Level> levels_;
};

/// Hands the Builder what RapidJSON reads.
struct QuickEvents {
    using Size = rapidjson::SizeType;

    Builder& builder;

    bool Null() { return builder.null(); }
    bool Bool(bool value) { return builder.boolean(value); }
    bool Int(int) { return false; }  // numbers come as their digits
    bool Uint(unsigned) { return false; }
    bool Int64(int64_t) { return false; }
    bool Uint64(uint64_t) { return false; }
    bool Double(double) { return false; }
    bool RawNumber(const char* digits, Size length, bool) {
        const std::string_view number(digits, length);
        const char* end = digits + length;
        if (number.find_first_of(".eE") == std::string_view::npos) {
            uint64_t natural = 0;
            int64_t negative = 0;
            const bool below = number.front() == '-';
            const auto read = below ? std::from_chars(digits, end, negative) : std::from_chars(digits, end, natural);
            if (read.ec != std::errc() || read.ptr != end) return false;
            return below ? builder.number_integer(negative) : builder.number_unsigned(natural);
        }
        double value = 0;
        const auto read = std::from_chars(digits, end, value);
        if (read.ec != std::errc() || read.ptr != end) return false;
        return builder.number_float(value, ".");
    }
    bool String(const char* text, Size length, bool) { return builder.text({text, length}); }
    bool StartObject() { return builder.start_object(0); }
    bool Key(const char* text, Size length, bool) { return builder.key_text({text, length}); }
    bool EndObject(Size) { return builder.end_object(); }
    bool StartArray() { return builder.start_array(0); }
    bool EndArray(Size) { return builder.end_array(); }
};

/// Twice as fast as the library that writes reports, which decides about all that is not accepted here and says why.
std::optional<Json> read_quickly(const std::string& text, Skim skim) {
    constexpr unsigned kFlags =
        rapidjson::kParseValidateEncodingFlag | rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseIterativeFlag;
    // It would take half of a pair of them for a character.
    if (text.find("\\ud") != std::string::npos || text.find("\\uD") != std::string::npos) return std::nullopt;
    Builder builder(skim);
    QuickEvents events{builder};
    rapidjson::MemoryStream stream(text.data(), text.size());
    rapidjson::Reader reader;
    if (reader.Parse<kFlags>(stream, events).IsError() || stream.Tell() != text.size()) return std::nullopt;
    return builder.take();
}

std::string shortened(std::string text) {
    constexpr size_t kLongest = 80;
    if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
    return text;
}

/// Why there is no document of this text, where the builder stopped or rounded.
ReadResult refusal(const std::string& name, const std::string& text) {
    ErrorPlace place;
    if (!Json::sax_parse(text, &place)) return failure_at(name, place.byte(), "not JSON: " + place.reason());
    if (const Excess excess = excess_of(text); excess.what != nullptr) {
        return failure_at(name, excess.byte, std::string("not a numsan report: ") + excess.what);
    }
    return failure_at(name, text.find(place.rounded()),
                      "not a numsan report: an integer outside of -9223372036854775808 .. 18446744073709551615");
}

/// parse_report, but for what is foreign.
ReadResult parse(const std::string& name, const std::string& text, Skim skim) {
    if (text.empty()) return failure_at(name, 0, "the file is empty");
    std::optional<Json> read = read_quickly(text, skim);
    if (!read) {
        Builder builder(skim);
        if (!Json::sax_parse(text, &builder) || builder.rounded()) return refusal(name, text);
        read = builder.take();
    }
    Json document = std::move(*read);
    if (!document.is_object()) {
        return failure_at(name, 0, std::string("not a numsan report: the file holds ") + document.type_name());
    }
    const auto marker = document.find("schema");
    if (marker == document.end()) {
        return failure_at(
            name, 0, "not a numsan report: there is no \"schema\" (expected \"" + std::string(kSchemaMarker) + "\")");
    }
    if (*marker != kSchemaMarker) {
        const std::string found =
            fields::clean(shortened(marker->dump(-1, ' ', false, Json::error_handler_t::replace)));
        return failure_at(name, offset_of(text, "schema"),
                          "not a numsan report: \"schema\" is " + found + " (expected \"" + kSchemaMarker + "\")");
    }
    for (const char* key : {"tool", "run", "coverage", "cost", "noted"}) {
        if (!document.contains(key) || !document[key].is_object()) {
            return failure_at(name, offset_of(text, key),
                              std::string("damaged report: \"") + key + "\" is not an object");
        }
    }
    if (!document.contains("verdict") || !document["verdict"].is_string()) {
        return failure_at(name, offset_of(text, "verdict"), "damaged report: \"verdict\" is not a string");
    }
    const Json& findings = fields::at(document, "findings");
    if (!findings.is_array()) {
        return failure_at(name, offset_of(text, "findings"), "damaged report: \"findings\" is not an array");
    }
    for (size_t i = 0; i < findings.size(); ++i) {
        if (!findings[i].is_object()) {
            return failure_at(name, offset_of(text, "findings"),
                              "damaged report: finding " + std::to_string(i + 1) + " is not an object");
        }
    }
    return {std::move(document), "", false};
}

}  // namespace

ReadResult parse_report(const std::string& name, const std::string& text, Skim skim) {
    ReadResult result = parse(name, text, skim);
    result.foreign = !result.ok() && !text.empty() && text.find(kMark) == std::string::npos;
    return result;
}

ReadResult read_report(const std::string& path, std::string* kept, Skim skim) {
    auto system_error = [&](int error) {
        return failure(path, "cannot be read: " + std::generic_category().message(error));
    };
    // What numsan wrote says so at its beginning, and is read as long as there is memory for it.
    constexpr size_t kLargestForeign = size_t(256) << 20;
    constexpr size_t kBeginning = 1 << 12;
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return system_error(errno);
    std::string text;
    std::string buffer(1 << 16, '\0');
    for (;;) {
        const ssize_t count = read(fd, buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            const int error = errno;
            close(fd);
            return failure(path, "byte " + std::to_string(text.size()) +
                                     ": cannot be read: " + std::generic_category().message(error));
        }
        if (count == 0) break;
        text.append(buffer.data(), static_cast<size_t>(count));
        if (text.size() > kLargestForeign && std::string_view(text).substr(0, kBeginning).find(kMark) == text.npos) {
            close(fd);
            ReadResult result = failure_at(path, kLargestForeign, "not a numsan report: longer than 256 MiB");
            result.foreign = true;
            return result;
        }
    }
    close(fd);
    ReadResult result = parse_report(path, text, skim);
    if (kept != nullptr) *kept = std::move(text);
    return result;
}

}  // namespace numsan
