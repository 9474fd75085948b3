// The records of a recording, one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "host/record/bytes.h"
#include "host/record/record_format.h"

namespace numsan {

/// Reads a file of any origin: RecordError says what is wrong, and at which byte of the file.
class RecordReader {
  public:
    /// Up to `bytes` of the file from `offset`, fewer at its end only. May throw RecordError.
    using Source = std::function<std::string(uint64_t offset, size_t bytes)>;

    /// Checks magic and version.
    explicit RecordReader(Source source);
    static RecordReader of_file(const std::string& path);

    /// The next record, or false at the end of what there is.
    bool next();
    RecordKind kind() const { return kind_; }
    /// Once for each record.
    template <class T>
    void read(T& value) {
        try {
            ByteReader bytes(record_, addresses_);
            transfer(bytes, value);
            if (!bytes.empty()) throw RecordError("a record is longer than what it holds");
        } catch (const RecordError& error) {
            throw damaged(error.what());
        }
    }
    /// That what was read does not fit what came before, at this place of the file.
    RecordError damaged(const std::string& what) const;

    /// Bytes at the end of the file that are the beginning of a block: whoever wrote it was stopped there.
    uint64_t cut_at() const { return cut_at_; }
    bool is_cut() const { return is_cut_; }
    uint64_t at() const { return block_at_; }

  private:
    bool next_block();

    Source source_;
    uint64_t offset_ = 0;
    uint64_t block_at_ = 0;
    uint64_t cut_at_ = 0;
    bool is_cut_ = false;
    std::string plain_;
    std::string_view rest_;
    RecordKind kind_ = RecordKind::None;
    std::string_view record_;
    AddressList addresses_{0};
};

}  // namespace numsan
