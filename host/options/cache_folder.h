// Which folder keeps compiled adapters: asked by those who load them, and by doctor.
#pragma once

#include <string>
#include <vector>

#include "host/options/trusted_path.h"

namespace numsan {

struct CacheFolder {
    std::string path;                   ///< empty: there is none, and numsan stays off
    std::vector<std::string> rejected;  ///< one line for each folder that came before it
    std::string why;                    ///< there is none, and what to do, in one line; empty where there is one
};

/// $NUMSAN_CACHE, else $XDG_CACHE_HOME/numsan, else $HOME/.cache/numsan, else /tmp/numsan-<uid>: the first that is a
/// trusted folder. A folder that the user chose with NUMSAN_CACHE and that is not safe is refused, and nothing stands
/// in for it. No variable is read in a program that runs with more rights than its user. [MT]
CacheFolder find_cache_folder(Missing missing);

/// Beside the libraries: adapters that were made ahead of time, under the names that AdapterRecipe gives them.
inline constexpr const char* kPrebuiltFolder = "prebuilt";

/// "WHY: no code is loaded from there; CURE", for the line that says that numsan stays off.
std::string refusal(const TrustedPath& unsafe, const std::string& otherwise);

}  // namespace numsan
