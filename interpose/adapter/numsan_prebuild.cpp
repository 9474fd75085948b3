// numsan_prebuild TORCH SOURCES FOLDER: makes the adapter for a torch that is not loaded, which is in the folder TORCH,
// and leaves it in FOLDER under the name by which it is looked for. Part of the build, never installed.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "host/options/cache_folder.h"
#include "interpose/adapter/adapter_cache.h"
#include "interpose/adapter/adapter_recipe.h"
#include "interpose/adapter/compiler.h"

namespace numsan {
namespace {

namespace fs = std::filesystem;

/// Whether the adapter for this very torch has been compiled here before, and is now at `output`, too.
bool copied_from_cache(const AdapterRecipe& recipe, const fs::path& output) {
    const CacheFolder cache = find_cache_folder(Missing::Accept);
    if (cache.path.empty()) return false;
    const std::string cached = cache.path + "/" + recipe.cached_name();
    if (trusted_file(cached).trust != Trust::Yes || !is_whole_library(cached)) return false;
    fs::copy_file(cached, output, fs::copy_options::overwrite_existing);
    return true;
}

void compile(const AdapterRecipe& recipe, const fs::path& output) {
    const std::string log = output.string() + ".log";
    const std::optional<int> status = run_program(recipe.compile_command(output.string()), log);
    if (status != 0 || !is_whole_library(output.string()))
        throw NoAdapter{"the adapter for torch " + recipe.torch().version + " does not compile: see " + log};
    fs::remove(log);
}

void prebuild(const std::string& torch, const std::string& sources, const fs::path& folder) {
    const fs::path cpu_library = fs::path(torch) / "lib/libtorch_cpu.so";
    if (!fs::exists(cpu_library)) throw NoAdapter{"no torch in " + torch + ": " + cpu_library.string() + " is missing"};
    const AdapterRecipe recipe(describe_torch(fs::canonical(cpu_library).string()), sources);
    fs::remove_all(folder);  // what is there is for another torch, or of older sources
    fs::create_directories(folder);
    const fs::path output = folder / recipe.prebuilt_name();
    const bool copied = copied_from_cache(recipe, output);
    if (!copied) compile(recipe, output);
    const fs::perms readable = fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                               fs::perms::others_read | fs::perms::others_exec;
    fs::permissions(output, readable);
    std::printf("adapter for torch %s: %s\n", recipe.torch().version.c_str(), copied ? "from the cache" : "compiled");
}

}  // namespace
}  // namespace numsan

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "numsan_prebuild TORCH SOURCES FOLDER\n");
        return 2;
    }
    try {
        numsan::prebuild(argv[1], argv[2], argv[3]);
        return 0;
    } catch (const numsan::NoAdapter& none) {
        std::fprintf(stderr, "numsan_prebuild: %s\n", none.reason.c_str());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "numsan_prebuild: %s\n", error.what());
    }
    return 1;
}
