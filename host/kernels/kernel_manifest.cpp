#include "host/kernels/kernel_manifest.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "host/kernels/manifest_reader.h"
#include "host/options/one_line.h"
#include "host/options/user_file.h"

namespace numsan {
namespace {

using Word = ManifestWord;

constexpr size_t kMostComplaints = 20;  ///< further kernels are counted

std::string types() {
    std::string all;
    for (int i = 0; i < kDTypeCount; ++i) all += (all.empty() ? "" : ", ") + std::string(info(DType(i)).name);
    return all;
}

/// The next word is a name followed by "=".
Word key(ManifestReader& reader, const char* known) {
    if (reader.word().kind != Word::Kind::Name) reader.fail(std::string("expected one of ") + known);
    Word name = reader.take();
    reader.expect('=', "=");
    return name;
}

[[noreturn]] void refuse(const Word& name, const char* known) {
    throw ManifestError{"unknown key " + quoted(name.text) + ": expected one of " + known, name.line, name.column};
}

void once(const Word& name, std::set<std::string>& seen) {
    if (!seen.insert(name.text).second)
        throw ManifestError{quoted(name.text) + " stands twice", name.line, name.column};
}

int64_t whole_number(ManifestReader& reader, const std::string& name, int64_t smallest, int64_t largest) {
    const Word word = reader.word();
    int64_t number = 0;
    const char* const end = word.text.data() + word.text.size();
    const auto read = std::from_chars(word.text.data(), end, number);
    const bool is_number = word.kind == Word::Kind::Name && read.ec == std::errc() && read.ptr == end;
    if (!is_number || number < smallest || number > largest)
        reader.fail(quoted(name) + " is no whole number of " + std::to_string(smallest) + " to " +
                    std::to_string(largest));
    reader.take();
    return number;
}

/// { argument = 0, type = "float32" }
KernelParameter buffer(ManifestReader& reader, KernelParameter::Use use) {
    constexpr const char* kKeys = "argument, type, count, offset";
    const Word begin = reader.word();
    reader.expect('{', "a buffer, { argument = 0, type = \"float32\" }");
    KernelParameter parameter{use};
    parameter.declared = true;
    std::set<std::string> seen;
    std::optional<int64_t> argument;
    std::optional<DType> dtype;
    while (!reader.word().is('}')) {
        const Word name = key(reader, kKeys);
        once(name, seen);
        if (name.text == "argument") {
            argument = whole_number(reader, name.text, 0, KernelManifest::kMostArguments - 1);
        } else if (name.text == "count") {
            parameter.count = whole_number(reader, name.text, 1, std::numeric_limits<int64_t>::max() / 16);
        } else if (name.text == "offset") {
            parameter.offset = static_cast<int32_t>(whole_number(reader, name.text, 0, 1 << 15));
        } else if (name.text == "type") {
            dtype = reader.word().kind == Word::Kind::Text ? dtype_of(reader.word().text) : std::nullopt;
            if (!dtype) reader.fail("'type' is none of " + types());
            reader.take();
        } else {
            refuse(name, kKeys);
        }
        if (!reader.word().is('}')) reader.expect(',', ", or }");
    }
    reader.take();
    const auto lacks = [&](const std::string& what) {
        throw ManifestError{"a buffer has no " + what, begin.line, begin.column};
    };
    if (!argument) lacks("'argument': its place among those of the kernel, from 0");
    if (!dtype) lacks("'type': one of " + types());
    parameter.argument = static_cast<int16_t>(*argument);
    parameter.dtype = *dtype;
    return parameter;
}

void add_buffers(ManifestReader& reader, KernelParameter::Use use, std::vector<KernelParameter>& parameters) {
    reader.expect('[', "a list, [{ argument = 0, type = \"float32\" }]");
    while (!reader.word().is(']')) {
        parameters.push_back(buffer(reader, use));
        if (!reader.word().is(']')) reader.expect(',', ", or ]");
    }
    reader.take();
}

/// [[kernel]] and what belongs to it.
std::pair<std::string, std::vector<KernelParameter>> kernel(ManifestReader& reader) {
    constexpr const char* kKeys = "symbol, writes, reads";
    const Word begin = reader.word();
    reader.expect('[', "[[kernel]]");
    reader.expect('[', "[[kernel]]");
    if (reader.word().kind != Word::Kind::Name || reader.word().text != "kernel") reader.fail("expected [[kernel]]");
    reader.take();
    reader.expect(']', "[[kernel]]");
    reader.expect(']', "[[kernel]]");
    std::pair<std::string, std::vector<KernelParameter>> made;
    std::set<std::string> seen;
    while (reader.word().kind != Word::Kind::End && !reader.word().is('[')) {
        const Word name = key(reader, kKeys);
        once(name, seen);
        if (name.text == "symbol") {
            if (reader.word().kind != Word::Kind::Text || reader.word().text.empty())
                reader.fail("'symbol' is no text, \"name\"");
            made.first = reader.take().text;
        } else if (name.text == "writes") {
            add_buffers(reader, KernelParameter::Use::Writes, made.second);
        } else if (name.text == "reads") {
            add_buffers(reader, KernelParameter::Use::Reads, made.second);
        } else {
            refuse(name, kKeys);
        }
        if (reader.word().line == name.line && reader.word().kind != Word::Kind::End)
            reader.fail("expected a new line");
    }
    if (made.first.empty()) throw ManifestError{"a kernel has no 'symbol', its name", begin.line, begin.column};
    if (!seen.contains("writes") && !seen.contains("reads"))
        throw ManifestError{"a kernel has neither 'writes' nor 'reads': `writes = []` for one that writes no numbers",
                            begin.line, begin.column};
    return made;
}

}  // namespace

KernelManifest KernelManifest::parse(std::string_view text, const std::string& name,
                                     std::vector<std::string>& complaints) {
    KernelManifest manifest;
    size_t bad = 0;
    const auto complain = [&](const ManifestError& error) {
        if (++bad > kMostComplaints) return;
        complaints.push_back("kernels: " + name + ":" + std::to_string(error.line) + ":" +
                             std::to_string(error.column) + ": " + error.what + "; the kernel is left out");
    };
    ManifestReader reader(text);
    bool at_kernel = false;  // else at what stands before the first, or is left of a bad one
    do {
        try {
            if (!at_kernel) bad == 0 ? reader.next() : reader.skip_to_table();
            at_kernel = true;
            if (reader.word().kind == Word::Kind::End) break;
            const Word begin = reader.word();
            auto [symbol, parameters] = kernel(reader);
            if (!manifest.kernels_.emplace(symbol, std::move(parameters)).second)
                throw ManifestError{"a kernel " + quoted(symbol) + " was described before", begin.line, begin.column};
        } catch (const ManifestError& error) {
            complain(error);
            at_kernel = false;
        }
    } while (true);
    if (bad > kMostComplaints)
        complaints.push_back("kernels: " + name + ": " + std::to_string(bad - kMostComplaints) +
                             " further kernels are left out");
    if (bad == 0 && manifest.kernels_.empty())
        complaints.push_back("kernels: " + name + ": no kernel is described: expected [[kernel]]");
    return manifest;
}

KernelManifest KernelManifest::read(const std::string& path, std::vector<std::string>& complaints) {
    if (path.empty()) return {};
    const UserFile file = read_user_file(path);
    if (file.problem.empty()) return parse(file.text, path, complaints);
    complaints.push_back("kernels: " + quoted(path) + " " + file.problem + "; no kernel is described");
    return {};
}

const std::vector<KernelParameter>* KernelManifest::find(std::string_view symbol) const {
    const auto found = kernels_.find(symbol);
    return found != kernels_.end() ? &found->second : nullptr;
}

std::vector<std::string> KernelManifest::symbols() const {
    std::vector<std::string> all;
    for (const auto& [symbol, buffers] : kernels_) all.push_back(symbol);
    return all;
}

}  // namespace numsan
