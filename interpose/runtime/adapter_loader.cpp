// Finds the torch that this process has loaded, and the adapter for it: from the cache, or compiled now with torch's
// own headers.
#include "interpose/runtime/adapter_loader.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "host/base/version.h"
#include "host/log/format.h"
#include "host/options/cache_folder.h"
#include "interpose/runtime/adapter_cache.h"
#include "interpose/runtime/adapter_failure.h"
#include "interpose/runtime/compiler.h"
#include "interpose/runtime/string_abi.h"

namespace numsan {
namespace {

namespace fs = std::filesystem;

// -DNDEBUG: without it RecordFunction has members that the library's own does not have.
constexpr const char* kCompileFlags[] = {"-std=c++20",          "-O2",      "-fPIC", "-shared", "-DNDEBUG",
                                         "-fvisibility=hidden", "-fno-plt", "-w"};

/// A reason to do without the adapter; ends up in AdapterLoadResult::reason.
struct TurnedOff {
    std::string reason;
};

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

/// The value of `__version__ = '2.11.0+cu130'`, with or without a type annotation.
std::string python_version(const std::string& text) {
    size_t at = text.rfind("__version__", 0) == 0 ? 0 : text.find("\n__version__");  // not where __all__ lists it
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
            throw TurnedOff{"torch " + torch.version +
                            " was built with libc++: the adapter can be built for libstdc++ only"};
        case StringAbi::Cxx11: break;
    }
    return "-D_GLIBCXX_USE_CXX11_ABI=1";
}

/// "2.11.0+cu130-<sources>-<place>": another torch, another numsan or another installation is another adapter.
std::string cache_key(const TorchInstall& torch, const fs::path& sources, const std::string& abi) {
    Fnv1a build;
    build.add(NUMSAN_VERSION);
    for (const char* flag : kCompileFlags) build.add(flag);
    build.add(abi);
    for (const fs::path& file : files_below(sources)) {
        build.add(file.lexically_relative(sources).string());
        build.add(read_file(file));
    }
    Fnv1a place;
    place.add(torch.cpu_library);
    std::string version = torch.version;
    for (char& c : version)
        if (!std::isalnum(static_cast<unsigned char>(c)) && !std::strchr("._+-", c)) c = '_';
    return version + "-" + hex(build.value(), 16) + "-" + hex(place.value(), 16);
}

std::vector<std::string> compile_command(const TorchInstall& torch, const fs::path& sources, const std::string& abi,
                                         const std::string& output) {
    std::vector<std::string> command = find_cxx_compiler();
    if (command.empty())
        throw TurnedOff{"the adapter for torch " + torch.version + " needs a C++ compiler: set CXX, or install g++"};
    command.insert(command.end(), std::begin(kCompileFlags), std::end(kCompileFlags));
    command.push_back(abi);
    command.push_back("-I" + sources.string());
    command.push_back("-I" + torch.root + "/include");
    command.push_back("-I" + torch.root + "/include/torch/csrc/api/include");
    const size_t before = command.size();
    for (const fs::path& file : files_below(sources / "interpose/torch"))
        if (file.extension() == ".cpp") command.push_back(file.string());
    if (command.size() == before) throw TurnedOff{"the adapter's sources are not in " + sources.string()};
    for (const std::string& word :
         {std::string("-o"), output, "-L" + fs::path(torch.cpu_library).parent_path().string(),
          std::string("-Wl,--no-as-needed"), std::string("-ltorch_cpu"), std::string("-lc10")})
        command.push_back(word);
    return command;
}

/// Waiters learn from the time of the log that the process that they waited for has failed.
bool failed_since(const std::string& log, std::chrono::system_clock::time_point start) {
    struct stat status {};
    if (stat(log.c_str(), &status) != 0) return false;
    const auto written = std::chrono::seconds(status.st_mtim.tv_sec) + std::chrono::nanoseconds(status.st_mtim.tv_nsec);
    return written > start.time_since_epoch();
}

/// Where an adapter is to come from, and what is known of earlier attempts.
struct Recipe {
    const TorchInstall& torch;
    fs::path sources;
    std::string abi;
};

AdapterFailure failure_beside(const std::string& adapter, const TorchInstall& torch) {
    const std::vector<std::string> compiler = find_cxx_compiler();
    std::vector<std::string> files = {torch.cpu_library, torch.root + "/include/ATen/record_function.h",
                                      (fs::path(torch.cpu_library).parent_path() / "libc10.so").string()};
    if (!compiler.empty()) files.push_back(compiler.front());
    return AdapterFailure(adapter, compiler, files);
}

/// The next process stands down with the same line.
[[noreturn]] void fail_for_all(const AdapterFailure& failure, const std::string& why) {
    const std::string line = why + "; remove " + failure.path() + " to try again";
    failure.record(line);
    throw TurnedOff{line};
}

void turn_off_if_it_failed(const AdapterFailure& failure) {
    if (std::string reason = failure.reason(); !reason.empty()) throw TurnedOff{std::move(reason)};
}

/// What the compiler says of a machine, not of what it compiles: a driver ends with 1, too, when its parts are killed.
bool lacked_room(const std::string& log) {
    std::ifstream file(log);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (const char* sign : {"Killed", "No space left", "out of memory", "cannot allocate memory", "Cannot allocate",
                             "internal compiler error", "Disk quota exceeded", "No such file or directory",
                             "signal terminated program", "unable to execute command"}) {
        if (text.find(sign) != std::string::npos) return true;
    }
    return false;
}

/// The caller holds the adapter's lock, and has waited for it since `start`.
void build_adapter(const Recipe& recipe, const AdapterFailure& failure, std::chrono::system_clock::time_point start,
                   Say say, AdapterLoadResult& result) {
    const TorchInstall& torch = recipe.torch;
    if (!torch.has_headers)
        throw TurnedOff{"torch " + torch.version + " has no headers in " + torch.root +
                        "/include to build the adapter with"};
    const std::string log = result.adapter_path + ".log";
    const std::string does_not_compile = "the adapter for torch " + torch.version + " does not compile: see " + log;
    if (failed_since(log, start)) throw TurnedOff{does_not_compile};
    const std::string temporary = result.adapter_path + kTemporaryMark + std::to_string(getpid()) + "-" +
                                  hex(static_cast<uint64_t>(start.time_since_epoch().count()), 16);
    const std::vector<std::string> command = compile_command(torch, recipe.sources, recipe.abi, temporary);
    say(("building the adapter for torch " + torch.version + " (once, about a minute)").c_str());
    const std::optional<int> status = run_program(command, temporary + ".log");
    std::error_code error;
    if (status.value_or(0) != 0 || fs::file_size(temporary, error) == 0 || error) {
        fs::remove(temporary, error);
        fs::rename(temporary + ".log", log, error);
        if (error)
            throw TurnedOff{"the folder for the adapter cannot be written: " + fs::path(log).parent_path().string()};
        // One that was killed or did not start may do better next time; so may one that had no room.
        const bool refused = status.has_value() && *status > 0 && *status < 126 && !lacked_room(log);
        if (refused) fail_for_all(failure, does_not_compile);
        throw TurnedOff{does_not_compile};
    }
    fs::permissions(temporary, fs::perms::owner_all, error);
    fs::rename(temporary, result.adapter_path, error);
    if (error) throw TurnedOff{"cannot write " + result.adapter_path + ": " + error.message()};
    fs::remove(temporary + ".log", error);
    fs::remove(log, error);
    failure.remove();
    result.built = true;
}

/// Null where there is none, or none that can be loaded.
void* open_adapter(const std::string& path) {
    const TrustedPath file = trusted_file(path);
    if (file.trust == Trust::Unsafe) throw TurnedOff{refusal(file, "remove it")};
    const bool whole = file.trust == Trust::Yes && is_whole_library(path);
    return whole ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
}

/// The adapter as a loaded library, made first if need be.
void* load_library(const Recipe& recipe, Say say, AdapterLoadResult& result) {
    const std::string& path = result.adapter_path;
    if (void* library = open_adapter(path)) return library;
    const AdapterFailure failure = failure_beside(path, recipe.torch);
    turn_off_if_it_failed(failure);
    const auto start = std::chrono::system_clock::now();
    const FileLock lock(path + ".lock");
    if (void* library = open_adapter(path)) return library;
    turn_off_if_it_failed(failure);
    // What is there was cut short by a full disk, or made on a machine with a newer C library. It stays until another
    // takes its place: that this process cannot open it does not say that no other can.
    build_adapter(recipe, failure, start, say, result);
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    const char* reason = dlerror();
    fail_for_all(failure, reason != nullptr ? reason : "the adapter cannot be loaded");
}

const AdapterApi* attach_adapter(const CoreApi& core, void* library, const std::string& path) {
    const auto attach = reinterpret_cast<TorchAttach>(dlsym(library, kTorchAttachSymbol));
    if (!attach) throw TurnedOff{path + " has no " + kTorchAttachSymbol};
    const char* why = nullptr;
    const AdapterApi* adapter = attach(&core, &why);
    if (!adapter) throw TurnedOff{why ? why : "the adapter cannot see torch's operators"};
    if (adapter->abi != kAdapterAbi) throw TurnedOff{"the adapter in " + path + " is of another version of numsan"};
    return adapter;
}

const AdapterApi* load(const CoreApi& core, const std::string& lib_dir, Say say, AdapterLoadResult& result) {
    const std::string cpu_library = find_loaded_torch();
    if (cpu_library.empty()) throw TurnedOff{"torch is not loaded"};
    const TorchInstall torch = describe_torch(cpu_library);
    result.torch_version = torch.version;
    result.torch_root = torch.root;
    const fs::path sources = fs::path(lib_dir) / "adapter";
    if (!fs::is_directory(sources)) throw TurnedOff{"the adapter's sources are not in " + sources.string()};
    const CacheFolder cache = find_cache_folder(Missing::Make);
    if (cache.path.empty()) throw TurnedOff{cache.why};
    const std::string abi = abi_flag(torch);
    result.adapter_path = cache.path + "/libnumsan_torch-" + cache_key(torch, sources, abi) + ".so";

    remove_orphans(cache.path);
    void* library = load_library({torch, sources, abi}, say, result);
    return attach_adapter(core, library, result.adapter_path);
}

int find_cpu_library(dl_phdr_info* info, size_t, void* found) {
    const char* path = info->dlpi_name;
    if (!path) return 0;
    const char* slash = std::strrchr(path, '/');
    if (std::strncmp(slash ? slash + 1 : path, "libtorch_cpu.so", 15) != 0) return 0;
    std::snprintf(static_cast<char*>(found), PATH_MAX, "%s", path);
    return 1;
}

}  // namespace

std::string find_loaded_torch() {
    char path[PATH_MAX] = "";
    dl_iterate_phdr(find_cpu_library, path);
    if (!path[0]) return {};
    std::error_code error;
    const fs::path full = fs::canonical(path, error);
    return error ? std::string(path) : full.string();
}

TorchInstall describe_torch(const std::string& cpu_library) {
    TorchInstall torch;
    torch.cpu_library = cpu_library;
    torch.root = fs::path(cpu_library).parent_path().parent_path().string();
    torch.version = python_version(read_file(torch.root + "/version.py"));
    if (torch.version.empty()) {
        torch.version = read_file(torch.root + "/build-version");
        torch.version.erase(std::min(torch.version.find_first_of(" \r\n"), torch.version.size()));
    }
    if (torch.version.empty()) torch.version = "unknown";
    std::error_code error;
    torch.has_headers = fs::exists(torch.root + "/include/ATen/record_function.h", error);
    return torch;
}

const AdapterApi* load_torch_adapter(const CoreApi& core, const std::string& lib_dir, Say say,
                                     AdapterLoadResult& result) noexcept {
    try {
        try {
            return load(core, lib_dir, say, result);
        } catch (const TurnedOff& turned_off) {
            result.reason = turned_off.reason;
        } catch (const std::exception& error) {
            result.reason = std::string("loading the adapter failed: ") + error.what();
        }
        say(("off: " + result.reason).c_str());
    } catch (...) {
        result.reason = "out of memory";  // short enough not to allocate
        say("off: out of memory while loading the adapter");
    }
    return nullptr;
}

}  // namespace numsan
