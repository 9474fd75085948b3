// Where CUPTI is looked for when the process has none: by those who load it, and by doctor, who only looks.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

namespace numsan {

inline constexpr char kCuptiName[] = "libcupti.so.13";

/// Folders besides the loader's own, in order. Reads CUDA_HOME and CUDA_PATH.
inline std::vector<std::string> cupti_folders() {
    std::vector<std::string> roots;
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
        if (const char* root = secure_getenv(variable); root != nullptr && *root == '/') roots.emplace_back(root);
    }
    roots.emplace_back("/usr/local/cuda");
    std::vector<std::string> folders;
    for (const std::string& root : roots) {
        folders.push_back(root + "/extras/CUPTI/lib64");
        folders.push_back(root + "/lib64");
    }
    return folders;
}

}  // namespace numsan
