#include "host/finding/place_of.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

namespace numsan {
namespace {

/// Python names files by the path it was started with, the loader knows where torch lies in the end: an environment may
/// be reached through a link.
bool lies_in(const std::string& folder, const std::string& file) {
    if (folder.empty()) return false;
    if (file.rfind(folder + "/", 0) == 0) return true;
    const std::filesystem::path root(folder);
    if (file.find("/" + root.filename().string() + "/") == std::string::npos) return false;
    std::error_code none;
    return std::filesystem::canonical(file, none).string().rfind(folder + "/", 0) == 0;
}

/// Headers of the system, and of CUDA's toolkit, which nvcc finds in targets/x86_64-linux/include.
bool is_system_header(const std::string& file) {
    if (file.starts_with("/usr/include/")) return true;
    const size_t targets = file.rfind("/targets/");
    if (targets == std::string::npos) return false;
    const size_t end = file.find('/', targets + std::string_view("/targets/").size());
    return end != std::string::npos && std::string_view(file).substr(0, end).ends_with("-linux") &&
           std::string_view(file).substr(end).starts_with("/include/");
}

std::string_view without_blanks(std::string_view text) {
    const size_t first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::optional<std::string> line_in(std::istream& in, int wanted) {
    std::string text;
    for (int i = 0; i < wanted; ++i) {
        if (!std::getline(in, text)) return std::nullopt;
    }
    const std::string_view line = without_blanks(text);
    return line.empty() ? std::nullopt : std::optional(std::string(line));
}

int count_same_above(std::istream& in, const Place& place) {
    const std::string head = "def " + place.function.substr(place.function.rfind('.') + 1) + "(";
    std::string text;
    int same = 0;
    for (int i = 1; i < place.line && std::getline(in, text); ++i) {
        const std::string_view line = without_blanks(text);
        if (line == *place.code) ++same;
        if (line.starts_with(head) || line.starts_with("async " + head)) same = 0;
    }
    return same;
}

}  // namespace

bool is_from_fx(const std::string& file) {
    return file.starts_with("<eval_with_key>") || file.starts_with("fx_generated_");
}

bool is_region_frame(const SourceFrame& frame, std::string_view function) {
    return (frame.file.ends_with("torch/_inductor/compile_fx.py") || frame.file.ends_with("torch/__init__.py")) &&
           frame.function.substr(frame.function.rfind('.') + 1) == function;
}

Origin PlaceFinder::origin(const SourceFrame& frame) const {
    const std::string& file = frame.file;
    if (file.empty() || file.rfind("<frozen", 0) == 0) return Origin::StandardLibrary;
    if (is_from_fx(file) || file == kOwnCode) return Origin::Torch;
    if (lies_in(torch_root_, file) || is_generated(file)) return Origin::Torch;
    const bool installed =
        file.find("/site-packages/") != std::string::npos || file.find("/dist-packages/") != std::string::npos;
    if (installed) return Origin::Library;
    if (frame.native && is_system_header(file)) return Origin::StandardLibrary;
    return !frame.native && is_standard(file) ? Origin::StandardLibrary : Origin::User;
}

/// Where the interpreter does not say, its folder goes by the name that it usually has.
bool PlaceFinder::is_standard(const std::string& file) const {
    if (!standard_library_.empty()) return lies_in(standard_library_, file);
    constexpr std::string_view kUsual = "/lib/python3.";
    const size_t found = file.find(kUsual);
    if (found == std::string::npos) return false;
    const size_t end = file.find_first_not_of("0123456789", found + kUsual.size());
    return end != std::string::npos && end > found + kUsual.size() &&
           (file[end] == '/' || file.compare(end, 2, "t/") == 0);
}

const SourceFrame* PlaceFinder::innermost(const std::vector<SourceFrame>& stack, size_t first, size_t last) const {
    for (size_t i = first; i < stack.size() && i < last; ++i) {
        const Origin whose = origin(stack[i]);
        if (whose == Origin::Library || whose == Origin::User) return &stack[i];
    }
    return nullptr;
}

const SourceFrame* PlaceFinder::innermost_user(const std::vector<SourceFrame>& stack, size_t first, size_t last) const {
    for (size_t i = first; i < stack.size() && i < last; ++i) {
        if (origin(stack[i]) == Origin::User) return &stack[i];
    }
    return nullptr;
}

size_t PlaceFinder::backward_entry(const std::vector<SourceFrame>& stack) {
    for (size_t i = 0; i < stack.size(); ++i) {
        if (stack[i].function == "_engine_run_backward") return i;
    }
    return stack.size();
}

const KeptSource* PlaceFinder::kept(const std::string& file, int line, const std::string& function) const {
    const auto found = sources_.find({{file, line}, function});
    return found != sources_.end() ? &found->second : nullptr;
}

void PlaceFinder::learn(const LiveNames::Sources& sources) {
    constexpr size_t kMostKept = 1 << 12;
    for (const auto& [line, source] : sources) {
        if (sources_.size() >= kMostKept) return;
        sources_.insert_or_assign(line, source);
    }
}

Place PlaceFinder::place(const SourceFrame& frame) const {
    Place made{frame.file, frame.line, frame.function, std::nullopt};
    if (const KeptSource* source = kept(frame.file, frame.line, frame.function)) {
        std::istringstream in(source->text);
        made.code = line_in(in, frame.line);
        made.cell = source->cell;
    } else {
        made.code = source_line(frame.file, frame.line);
    }
    return made;
}

int PlaceFinder::same_lines_above(const Place& place) const {
    if (!place.code) return 0;
    if (const KeptSource* source = kept(place.file, place.line, place.function)) {
        std::istringstream in(source->text);
        return count_same_above(in, place);
    }
    std::ifstream in(place.file);
    return count_same_above(in, place);
}

bool is_generated(const std::string& file) {
    const char* folder = std::getenv("TORCHINDUCTOR_CACHE_DIR");
    if (folder != nullptr && *folder != '\0' && file.rfind(folder, 0) == 0) return true;
    return file.find("/torchinductor_") != std::string::npos;
}

std::optional<std::string> source_line(const std::string& file, int wanted) {
    std::ifstream in(file);
    return line_in(in, wanted);
}

std::vector<std::string> source_lines(const std::string& file, int first, int last) {
    constexpr size_t kLongest = 200;
    std::ifstream in(file);
    std::string text;
    std::vector<std::string> lines;
    for (int i = 1; i <= last && std::getline(in, text); ++i) {
        while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.pop_back();
        if (i >= first) lines.push_back(text.substr(0, kLongest));
    }
    return lines;
}

}  // namespace numsan
