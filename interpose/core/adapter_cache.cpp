// The folder where compiled adapters are kept between runs, and the lock that lets one process at a time build one.
#include "interpose/core/adapter_cache.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace numsan {
namespace {

bool is_ours(const struct stat& status) {
    return (status.st_uid == geteuid() || status.st_uid == 0) && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// Makes `folder` and what is above it if need be, and says whether code may be loaded from it. The folder itself must
/// not be a link when it lies where everybody may write.
bool is_usable_folder(const std::string& folder, bool in_public) {
    struct stat status {};
    const auto look = [&] { return (in_public ? lstat : stat)(folder.c_str(), &status) == 0; };
    if (!look()) {
        std::error_code error;
        std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), error);
        if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return false;
        if (!look()) return false;
    }
    return S_ISDIR(status.st_mode) && is_ours(status) && (!in_public || status.st_uid == geteuid());
}

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

}  // namespace

std::string find_adapter_cache() {
    std::string chosen = variable("NUMSAN_CACHE");
    if (!chosen.empty() && is_usable_folder(chosen, false)) return chosen;
    const std::string xdg = variable("XDG_CACHE_HOME");
    if (!xdg.empty() && xdg[0] == '/' && is_usable_folder(xdg + "/numsan", false)) return xdg + "/numsan";
    const std::string home = variable("HOME");
    if (!home.empty() && home[0] == '/' && is_usable_folder(home + "/.cache/numsan", false))
        return home + "/.cache/numsan";
    std::string temporary = "/tmp/numsan-" + std::to_string(geteuid());
    return is_usable_folder(temporary, true) ? temporary : "";
}

bool is_trusted_file(const std::string& path) {
    struct stat status {};
    return lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 && is_ours(status);
}

bool is_whole_library(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    Elf64_Ehdr header{};
    if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return false;
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
    // Linkers write the table of sections last.
    file.seekg(0, std::ios::end);
    const auto size = static_cast<uint64_t>(file.tellg());
    const uint64_t table = uint64_t(header.e_shnum) * header.e_shentsize;
    return header.e_type == ET_DYN && table > 0 && header.e_shoff <= size && table <= size - header.e_shoff;
}

FileLock::FileLock(const std::string& path) : descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (descriptor_ < 0) return;
    while (flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
    }
}

FileLock::~FileLock() {
    if (descriptor_ >= 0) close(descriptor_);
}

void remove_orphans(const std::string& folder) {
    std::error_code error;
    for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        const std::string path = at->path().string();
        const size_t mark = path.rfind(kTemporaryMark);
        if (mark == path.npos || mark <= folder.size()) continue;
        const int lock = open((path.substr(0, mark) + ".lock").c_str(), O_RDWR | O_CLOEXEC);
        if (lock < 0) continue;
        if (flock(lock, LOCK_EX | LOCK_NB) == 0) unlink(path.c_str());
        close(lock);
    }
}

void Fnv1a::add(const void* data, size_t bytes) {
    const auto* byte = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < bytes; ++i) value_ = (value_ ^ byte[i]) * 1099511628211u;
}

}  // namespace numsan
