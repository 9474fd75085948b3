#include "host/options/adapter_name.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace numsan {
namespace {

constexpr std::string_view kStart = "libnumsan_torch-";
constexpr std::string_view kEnd = ".so";
constexpr size_t kDigits = 16;

}  // namespace

std::string adapter_name(const std::string& version, const std::string& build, const std::string& torch) {
    std::string shown = version;
    for (char& c : shown)
        if (!std::isalnum(static_cast<unsigned char>(c)) && !std::strchr("._+-", c)) c = '_';
    return std::string(kStart) + shown + "-" + build + "-" + torch + std::string(kEnd);
}

std::vector<std::string> torches_of_adapters(const std::string& folder) {
    constexpr size_t kRest = 2 * (kDigits + 1) + kEnd.size();
    std::vector<std::string> versions;
    std::error_code error;
    for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        if (!name.starts_with(kStart) || !name.ends_with(kEnd) || name.size() <= kStart.size() + kRest) continue;
        versions.push_back(name.substr(kStart.size(), name.size() - kStart.size() - kRest));
    }
    std::sort(versions.begin(), versions.end(), [](const std::string& a, const std::string& b) {
        return strverscmp(a.c_str(), b.c_str()) < 0;  // 2.9 before 2.11
    });
    versions.erase(std::unique(versions.begin(), versions.end()), versions.end());
    return versions;
}

}  // namespace numsan
