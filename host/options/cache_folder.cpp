#include "host/options/cache_folder.h"

#include <unistd.h>

#include <cstdlib>

namespace numsan {
namespace {

std::string variable(const char* name) {
    const char* value = secure_getenv(name);
    return value != nullptr ? value : "";
}

std::vector<std::string> folders_by_default() {
    std::vector<std::string> folders;
    const std::string xdg = variable("XDG_CACHE_HOME");
    if (xdg.starts_with("/")) folders.push_back(xdg + "/numsan");
    const std::string home = variable("HOME");
    if (home.starts_with("/")) folders.push_back(home + "/.cache/numsan");
    folders.push_back("/tmp/numsan-" + std::to_string(geteuid()));
    return folders;
}

constexpr const char* kSetAnother = "set NUMSAN_CACHE to a folder that only you can write";

/// True when the search is over.
bool settle(const std::string& path, Missing missing, bool chosen, CacheFolder& cache) {
    TrustedPath found = trusted_folder(path, missing);
    if (found.trust == Trust::Yes) {
        cache.path = found.resolved;
        cache.why.clear();
        return true;
    }
    if (!found.why.starts_with(path)) found.why = path + ": " + found.why;
    cache.rejected.push_back(found.why);
    if (found.trust != Trust::Unsafe) return false;
    if (cache.why.empty()) cache.why = refusal(found, kSetAnother);
    return chosen;
}

}  // namespace

CacheFolder find_cache_folder(Missing missing) {
    CacheFolder cache;
    const std::string chosen = variable("NUMSAN_CACHE");
    if (!chosen.empty() && settle(chosen, missing, true, cache)) return cache;
    for (const std::string& folder : folders_by_default()) {
        if (settle(folder, missing, false, cache)) return cache;
    }
    if (cache.why.empty()) cache.why = std::string("no folder to keep the adapter in: ") + kSetAnother;
    return cache;
}

std::string refusal(const TrustedPath& unsafe, const std::string& otherwise) {
    const std::string cure = unsafe.cure.empty() ? "" : unsafe.cure + ", or ";
    return unsafe.why + ": no code is loaded from there; " + cure + otherwise;
}

}  // namespace numsan
