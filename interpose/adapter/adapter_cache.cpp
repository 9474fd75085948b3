// The folder where compiled adapters are kept between runs, and the lock that lets one process at a time build one.
#include "interpose/adapter/adapter_cache.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace numsan {

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
