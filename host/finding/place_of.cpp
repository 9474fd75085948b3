#include "host/finding/place_of.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

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

}  // namespace

bool is_from_fx(const std::string& file) {
    return file.starts_with("<eval_with_key>") || file.starts_with("fx_generated_");
}

Origin PlaceFinder::origin(const SourceFrame& frame) const {
    const std::string& file = frame.file;
    if (file.empty() || file.rfind("<frozen", 0) == 0) return Origin::StandardLibrary;
    if (is_from_fx(file)) return Origin::Torch;
    if (lies_in(torch_root_, file) || is_generated(file)) return Origin::Torch;
    const bool installed =
        file.find("/site-packages/") != std::string::npos || file.find("/dist-packages/") != std::string::npos;
    if (installed) return Origin::Library;
    if (frame.native && file.rfind("/usr/include/", 0) == 0) return Origin::StandardLibrary;
    const size_t python = file.find("/lib/python3");
    return python != std::string::npos && !frame.native ? Origin::StandardLibrary : Origin::User;
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

Place PlaceFinder::place(const SourceFrame& frame) {
    return {frame.file, frame.line, frame.function, source_line(frame.file, frame.line)};
}

bool is_generated(const std::string& file) {
    const char* folder = std::getenv("TORCHINDUCTOR_CACHE_DIR");
    if (folder != nullptr && *folder != '\0' && file.rfind(folder, 0) == 0) return true;
    return file.find("/torchinductor_") != std::string::npos;
}

std::optional<std::string> source_line(const std::string& file, int line) {
    std::ifstream in(file);
    std::string text;
    for (int i = 0; i < line; ++i) {
        if (!std::getline(in, text)) return std::nullopt;
    }
    const size_t first = text.find_first_not_of(" \t\r");
    if (first == std::string::npos) return std::nullopt;
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace numsan
