// Finds the torch that this process has loaded, and the adapter for it: made ahead of time, from the cache, or compiled
// now with torch's own headers.
#include "interpose/runtime/adapter_loader.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "host/log/format.h"
#include "host/options/cache_folder.h"
#include "interpose/adapter/adapter_cache.h"
#include "interpose/adapter/adapter_failure.h"
#include "interpose/adapter/adapter_recipe.h"
#include "interpose/adapter/compiler.h"

namespace numsan {
namespace {

namespace fs = std::filesystem;

/// Waiters learn from the time of the log that the process that they waited for has failed.
bool failed_since(const std::string& log, std::chrono::system_clock::time_point start) {
    struct stat status {};
    if (stat(log.c_str(), &status) != 0) return false;
    const auto written = std::chrono::seconds(status.st_mtim.tv_sec) + std::chrono::nanoseconds(status.st_mtim.tv_nsec);
    return written > start.time_since_epoch();
}

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
    throw NoAdapter{line};
}

void turn_off_if_it_failed(const AdapterFailure& failure) {
    if (std::string reason = failure.reason(); !reason.empty()) throw NoAdapter{std::move(reason)};
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
void build_adapter(const AdapterRecipe& recipe, const AdapterFailure& failure,
                   std::chrono::system_clock::time_point start, Say say, AdapterLoadResult& result) {
    const TorchInstall& torch = recipe.torch();
    const std::string log = result.adapter_path + ".log";
    const std::string does_not_compile = "the adapter for torch " + torch.version + " does not compile: see " + log;
    if (failed_since(log, start)) throw NoAdapter{does_not_compile};
    const std::string temporary = result.adapter_path + kTemporaryMark + std::to_string(getpid()) + "-" +
                                  hex(static_cast<uint64_t>(start.time_since_epoch().count()), 16);
    const std::vector<std::string> command = recipe.compile_command(temporary);
    say(("building the adapter for torch " + torch.version + " (once, about a minute)").c_str());
    const std::optional<int> status = run_program(command, temporary + ".log");
    std::error_code error;
    if (status.value_or(0) != 0 || fs::file_size(temporary, error) == 0 || error) {
        fs::remove(temporary, error);
        fs::rename(temporary + ".log", log, error);
        if (error)
            throw NoAdapter{"the folder for the adapter cannot be written: " + fs::path(log).parent_path().string()};
        // One that was killed or did not start may do better next time; so may one that had no room.
        const bool refused = status.has_value() && *status > 0 && *status < 126 && !lacked_room(log);
        if (refused) fail_for_all(failure, does_not_compile);
        throw NoAdapter{does_not_compile};
    }
    fs::permissions(temporary, fs::perms::owner_all, error);
    fs::rename(temporary, result.adapter_path, error);
    if (error) throw NoAdapter{"cannot write " + result.adapter_path + ": " + error.message()};
    fs::remove(temporary + ".log", error);
    fs::remove(log, error);
    failure.remove();
    result.built = true;
}

/// Null where there is none, or none that can be loaded.
void* open_adapter(const std::string& path) {
    const TrustedPath file = trusted_file(path);
    if (file.trust == Trust::Unsafe) throw NoAdapter{refusal(file, "remove it")};
    const bool whole = file.trust == Trust::Yes && is_whole_library(path);
    return whole ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
}

/// The adapter as a loaded library, made first if need be.
void* load_library(const AdapterRecipe& recipe, Say say, AdapterLoadResult& result) {
    const std::string& path = result.adapter_path;
    if (void* library = open_adapter(path)) return library;
    const AdapterFailure failure = failure_beside(path, recipe.torch());
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
    if (!attach) throw NoAdapter{path + " has no " + kTorchAttachSymbol};
    const char* why = nullptr;
    const AdapterApi* adapter = attach(&core, &why);
    if (!adapter) throw NoAdapter{why ? why : "the adapter cannot see torch's operators"};
    if (adapter->abi != kAdapterAbi) throw NoAdapter{"the adapter in " + path + " is of another version of numsan"};
    return adapter;
}

/// What lies beside the libraries is trusted as they are. Null where none is for this torch, or where it cannot be
/// loaded: it may have been made on a machine with a newer C library.
void* open_prebuilt(const AdapterRecipe& recipe, const std::string& lib_dir, AdapterLoadResult& result) {
    const std::string path = lib_dir + "/" + kPrebuiltFolder + "/" + recipe.prebuilt_name();
    if (access(path.c_str(), R_OK) != 0 || !is_whole_library(path)) return nullptr;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    result.adapter_path = path;
    result.prebuilt = true;
    return library;
}

const AdapterApi* load(const CoreApi& core, const std::string& lib_dir, Say say, AdapterLoadResult& result) {
    const std::string cpu_library = find_loaded_torch();
    if (cpu_library.empty()) throw NoAdapter{"torch is not loaded"};
    const TorchInstall torch = describe_torch(cpu_library);
    result.torch_version = torch.version;
    result.torch_root = torch.root;
    const AdapterRecipe recipe(torch, fs::path(lib_dir) / "adapter");
    void* library = open_prebuilt(recipe, lib_dir, result);
    if (library == nullptr) {
        const CacheFolder cache = find_cache_folder(Missing::Make);
        if (cache.path.empty()) throw NoAdapter{cache.why};
        result.adapter_path = cache.path + "/" + recipe.cached_name();
        remove_orphans(cache.path);
        library = load_library(recipe, say, result);
    }
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

const AdapterApi* load_torch_adapter(const CoreApi& core, const std::string& lib_dir, Say say,
                                     AdapterLoadResult& result) noexcept {
    try {
        try {
            return load(core, lib_dir, say, result);
        } catch (const NoAdapter& turned_off) {
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
