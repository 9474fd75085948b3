// Finds the torch that this process has loaded, and the adapter for it: made ahead of time, from the cache, or compiled
// now with torch's own headers.
#pragma once

#include <string>

#include "host/base/adapter_abi.h"
#include "interpose/adapter/adapter_recipe.h"

namespace numsan {

/// Takes one line for the user: without the "numsan: " in front and without a newline.
using Say = void (*)(const char* line);

/// How loading went. `reason` is empty exactly when the adapter is attached; it has been said already, as "off:
/// <reason>".
struct AdapterLoadResult {
    std::string torch_version;  ///< "2.11.0+cu130", or "unknown"
    std::string torch_root;     ///< the folder that holds lib/libtorch_cpu.so
    std::string adapter_path;   ///< once known
    std::string reason;
    bool built = false;     ///< compiled by this process
    bool prebuilt = false;  ///< found beside the libraries; else in the cache, or compiled
};

/// Path of the libtorch_cpu.so that is mapped into this process; empty when there is none.
std::string find_loaded_torch();

/// Loads the adapter for the loaded torch and attaches `core` to it. `lib_dir` holds adapter/, the adapter's sources,
/// and what was made ahead of time. Returns what the adapter offers, which lives for ever, or null. `say` gets a line
/// before a build and a line on failure. May compile, which takes about a minute, and blocks while another process
/// does. Never throws. [MT]
const AdapterApi* load_torch_adapter(const CoreApi& core, const std::string& lib_dir, Say say,
                                     AdapterLoadResult& result) noexcept;

}  // namespace numsan
