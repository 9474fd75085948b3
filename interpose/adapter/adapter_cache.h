// The folder where compiled adapters are kept between runs, and the lock that lets one process at a time build one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace numsan {

/// Whether `path` is a shared library of this machine's kind with all of its bytes: mapping one that was cut short
/// would kill the process at the first touch of a missing page, where dlopen() cannot say no.
bool is_whole_library(const std::string& path);

/// An exclusive lock between processes, held while this lives. On a file system without locks, and in a folder that
/// cannot be written, it does not wait: building twice is harmless, as the result is renamed into place.
class FileLock {
  public:
    explicit FileLock(const std::string& path);
    ~FileLock();
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;

  private:
    int descriptor_;
};

/// What a process that builds NAME writes into the folder of NAME begins with NAME and this, while it holds NAME.lock.
inline constexpr const char* kTemporaryMark = ".tmp-";

/// Removes what killed builds left in `folder`: temporary files whose lock is not held, neither here nor, on a shared
/// file system, elsewhere. Where files cannot be locked they are left alone. The caller holds no FileLock.
void remove_orphans(const std::string& folder);

/// FNV-1a, 64 bits, over any number of pieces.
class Fnv1a {
  public:
    void add(const void* data, size_t bytes);
    void add(const std::string& text) { add(text.data(), text.size() + 1); }
    uint64_t value() const { return value_; }

  private:
    uint64_t value_ = 14695981039346656037u;
};

}  // namespace numsan
