#include "host/record/record_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <memory>
#include <system_error>

namespace numsan {
namespace {

RecordError at_byte(uint64_t byte, const std::string& what) {
    return RecordError("byte " + std::to_string(byte) + ": " + what);
}

uint32_t get_u32(const char* at) {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value |= static_cast<uint32_t>(static_cast<uint8_t>(at[i])) << (8 * i);
    return value;
}

}  // namespace

RecordReader::RecordReader(Source source) : source_(std::move(source)) {
    const std::string header = source_(0, kFileHeader);
    const std::string_view magic = std::string_view(header).substr(0, kRecordMagic.size());
    if (magic != kRecordMagic.substr(0, magic.size())) throw at_byte(0, "not a recording of numsan");
    if (header.size() < kFileHeader) throw at_byte(header.size(), "the file ends within its header");
    if (const auto version = static_cast<uint8_t>(header.back()); version != kRecordVersion) {
        throw at_byte(kRecordMagic.size(), "a recording of version " + std::to_string(version) +
                                               "; this numsan reads version " + std::to_string(kRecordVersion));
    }
    offset_ = kFileHeader;
}

RecordReader RecordReader::of_file(const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) throw RecordError("cannot be read: " + std::generic_category().message(errno));
    const std::shared_ptr<const int> file(new int(descriptor), [](const int* opened) {
        close(*opened);
        delete opened;
    });
    struct stat status {};
    if (fstat(descriptor, &status) == 0 && !S_ISREG(status.st_mode))
        throw RecordError("cannot be read: it is no regular file");
    return RecordReader([file](uint64_t offset, size_t bytes) {
        std::string text(bytes, '\0');
        size_t done = 0;
        while (done < bytes) {
            const ssize_t count = pread(*file, text.data() + done, bytes - done, static_cast<off_t>(offset + done));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) throw at_byte(offset + done, "cannot be read: " + std::generic_category().message(errno));
            if (count == 0) break;
            done += static_cast<size_t>(count);
        }
        text.resize(done);
        return text;
    });
}

RecordError RecordReader::damaged(const std::string& what) const {
    return at_byte(block_at_, "the block that begins here is damaged: " + what);
}

bool RecordReader::next_block() {
    block_at_ = offset_;
    const std::string header = source_(offset_, kBlockHeader);
    const auto cut = [&] {
        is_cut_ = true;
        cut_at_ = block_at_;
        return false;
    };
    if (header.empty()) return false;
    if (header[0] != kBlockMark) throw damaged("it does not begin as blocks do");
    if (header.size() < kBlockHeader) return cut();
    const uint32_t stored = get_u32(header.data() + 1);
    const uint32_t plain = get_u32(header.data() + 5);
    if (stored > kMostStored || plain > kMostPlain || plain == 0) throw damaged("its length is out of range");
    // What follows distinguishes a damaged length from a file that was cut.
    const std::string bytes = source_(offset_ + kBlockHeader, stored);
    if (bytes.size() < stored) return cut();
    const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
    if (crc32(0, data, static_cast<uInt>(stored)) != get_u32(header.data() + 9))
        throw damaged("its checksum does not agree");
    plain_.resize(plain);
    uLongf inflated = plain;
    if (uncompress(reinterpret_cast<Bytef*>(plain_.data()), &inflated, data, stored) != Z_OK || inflated != plain)
        throw damaged("it cannot be inflated");
    rest_ = plain_;
    offset_ += kBlockHeader + stored;
    return true;
}

bool RecordReader::next() {
    if (rest_.empty() && !next_block()) return false;
    kind_ = static_cast<RecordKind>(static_cast<uint8_t>(rest_[0]));
    if (static_cast<uint64_t>(kind_) > kLastRecordKind) throw damaged("a record of an unknown kind");
    rest_.remove_prefix(1);
    AddressList none;
    ByteReader bytes(rest_, none);
    uint64_t length = 0;
    try {
        length = bytes.number();
    } catch (const RecordError& error) {
        throw damaged(error.what());
    }
    rest_.remove_prefix(rest_.size() - bytes.left());
    if (length > rest_.size()) throw damaged("a record goes beyond it");
    record_ = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return true;
}

}  // namespace numsan
