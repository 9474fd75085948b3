// The file of a recording, written block by block.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "host/record/bytes.h"
#include "host/record/record_format.h"

namespace numsan {

/// Not thread-safe. Never throws but std::bad_alloc. After the first failure nothing is written any more.
class RecordWriter {
  public:
    /// The file is made, or emptied if it is a regular one that no other process is recording into; else a name beside
    /// it is taken: "-PID" before its extension. Returns what went wrong, in one line.
    std::optional<std::string> open(const std::string& path, uint64_t most_bytes);
    ~RecordWriter() { close(); }

    const std::string& path() const { return path_; }
    bool is_open() const { return descriptor_ >= 0; }

    template <class T>
    void add(RecordKind kind, const T& value) {
        ByteWriter bytes(addresses_);
        bytes.out().swap(scratch_);
        bytes.out().clear();
        write(bytes, value);
        scratch_.swap(bytes.out());
        add_bytes(kind, scratch_);
    }

    /// What is in memory goes to the file if it is much, or old.
    void flush_sometimes();
    /// All of it.
    void flush();
    void close();
    /// In a forked child: the file is the parent's.
    void abandon();

    /// Why writing has ended, in a user's words; empty while it goes on.
    const std::string& failure() const { return failure_; }

  private:
    void add_bytes(RecordKind kind, const std::string& bytes);

    static constexpr size_t kBlock = 256 << 10;
    std::string path_;
    int descriptor_ = -1;
    uint64_t written_ = 0;
    uint64_t most_bytes_ = 0;
    std::string plain_, stored_, scratch_;
    std::string failure_;
    AddressWriter addresses_;
    std::chrono::steady_clock::time_point flushed_;
};

}  // namespace numsan
