#include "interpose/adapter/adapter_recipe.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "host/base/version.h"
#include "host/log/format.h"
#include "host/options/adapter_name.h"
#include "interpose/adapter/adapter_cache.h"
#include "interpose/adapter/compiler.h"
#include "interpose/adapter/string_abi.h"

namespace numsan {
namespace {

namespace fs = std::filesystem;

// -DNDEBUG: without it RecordFunction has members that the library's own does not have.
constexpr const char* kCompileFlags[] = {"-std=c++20",          "-O2",      "-fPIC", "-shared", "-DNDEBUG",
                                         "-fvisibility=hidden", "-fno-plt", "-w"};

/// In one piece: the adapter's sources are read at every start. Empty where there is nothing to be read.
std::string read_file(const fs::path& path) {
    std::ifstream in(path, std::ios::binary | std::ios::ate);
    const std::streamoff size = in.tellg();
    std::string text(size > 0 ? static_cast<size_t>(size) : 0, '\0');
    in.seekg(0);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(in ? text.size() : static_cast<size_t>(in.gcount()));
    return text;
}

/// The value of `name = '2.11.0+cu130'` in a Python file, with or without a type annotation.
std::string python_value(const std::string& text, const std::string& name) {
    size_t at = text.rfind(name, 0) == 0 ? 0 : text.find("\n" + name);  // not where __all__ lists it
    if (at == std::string::npos) return {};
    if (at != 0) ++at;
    const size_t line_end = std::min(text.find('\n', at), text.size());
    at = text.find_first_of("'\"", at);
    if (at == std::string::npos || at >= line_end) return {};
    const size_t end = text.find(text[at], at + 1);
    return end == std::string::npos ? std::string() : text.substr(at + 1, end - at - 1);
}

std::vector<fs::path> files_below(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
        if (at->is_regular_file(error)) files.push_back(at->path());
    std::sort(files.begin(), files.end());
    return files;
}

/// Which strings torch's functions take.
std::string abi_flag(const TorchInstall& torch) {
    switch (string_abi(torch.cpu_library)) {
        case StringAbi::Old: return "-D_GLIBCXX_USE_CXX11_ABI=0";
        case StringAbi::Libcxx:
            throw NoAdapter{"torch " + torch.version +
                            " was built with libc++: the adapter can be built for libstdc++ only"};
        case StringAbi::Cxx11: break;
    }
    return "-D_GLIBCXX_USE_CXX11_ABI=1";
}

/// Of all that is compiled, but for torch.
std::string build_hash(const fs::path& sources, const std::string& abi) {
    Fnv1a build;
    build.add(NUMSAN_VERSION);
    for (const char* flag : kCompileFlags) build.add(flag);
    build.add(abi);
    for (const fs::path& file : files_below(sources)) {
        build.add(file.lexically_relative(sources).string());
        build.add(read_file(file));
    }
    return hex(build.value(), 16);
}

std::string hash(const std::string& text) {
    Fnv1a fnv;
    fnv.add(text);
    return hex(fnv.value(), 16);
}

}  // namespace

AdapterRecipe::AdapterRecipe(TorchInstall torch, fs::path sources)
    : torch_(std::move(torch)), sources_(std::move(sources)) {
    if (!fs::is_directory(sources_)) throw NoAdapter{"the adapter's sources are not in " + sources_.string()};
    abi_ = abi_flag(torch_);
    build_ = build_hash(sources_, abi_);
}

std::string AdapterRecipe::prebuilt_name() const { return adapter_name(torch_.version, build_, hash(torch_.commit)); }

std::string AdapterRecipe::cached_name() const {
    return adapter_name(torch_.version, build_, hash(torch_.cpu_library));
}

TorchInstall describe_torch(const std::string& cpu_library) {
    TorchInstall torch;
    torch.cpu_library = cpu_library;
    torch.root = fs::path(cpu_library).parent_path().parent_path().string();
    const std::string said = read_file(torch.root + "/version.py");
    torch.version = python_value(said, "__version__");
    torch.commit = python_value(said, "git_version");
    if (torch.version.empty()) {
        torch.version = read_file(torch.root + "/build-version");
        torch.version.erase(std::min(torch.version.find_first_of(" \r\n"), torch.version.size()));
    }
    if (torch.version.empty()) torch.version = "unknown";
    std::error_code error;
    torch.has_headers = fs::exists(torch.root + "/include/ATen/record_function.h", error);
    return torch;
}

std::vector<std::string> AdapterRecipe::compile_command(const std::string& output) const {
    if (!torch_.has_headers)
        throw NoAdapter{"torch " + torch_.version + " has no headers in " + torch_.root +
                        "/include to build the adapter with"};
    std::vector<std::string> command = find_cxx_compiler();
    if (command.empty())
        throw NoAdapter{"the adapter for torch " + torch_.version + " needs a C++ compiler: set CXX, or install g++"};
    command.insert(command.end(), std::begin(kCompileFlags), std::end(kCompileFlags));
    command.push_back(abi_);
    command.push_back("-I" + sources_.string());
    command.push_back("-I" + torch_.root + "/include");
    command.push_back("-I" + torch_.root + "/include/torch/csrc/api/include");
    const size_t before = command.size();
    // As one source: torch's headers take longer than all that is ours.
    for (const fs::path& file : files_below(sources_ / "interpose/torch"))
        if (file.extension() == ".cpp") command.insert(command.end(), {"-include", file.string()});
    if (command.size() == before) throw NoAdapter{"the adapter's sources are not in " + sources_.string()};
    for (const std::string& word :
         {std::string("-x"), std::string("c++"), std::string("/dev/null"), std::string("-o"), output,
          "-L" + fs::path(torch_.cpu_library).parent_path().string(), std::string("-Wl,--no-as-needed"),
          std::string("-ltorch_cpu"), std::string("-lc10")})
        command.push_back(word);
    return command;
}

}  // namespace numsan
