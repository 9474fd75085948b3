#include "host/record/record_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <system_error>

#include "host/report/held_signals.h"

namespace numsan {
namespace {

void put_u32(char* at, uint32_t value) {
    for (int i = 0; i < 4; ++i) at[i] = static_cast<char>(value >> (8 * i));
}

std::string reason(const std::string& path, int error) {
    return "cannot write " + path + ": " + std::generic_category().message(error);
}

/// 0, or the errno of what failed.
int write_all(int descriptor, const char* data, size_t size) {
    const HeldSignals held;
    while (size > 0) {
        const ssize_t count = ::write(descriptor, data, size);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return count < 0 ? errno : ENOSPC;
        data += count;
        size -= static_cast<size_t>(count);
    }
    return 0;
}

std::string beside(std::string path) {
    const size_t dot = path.rfind('.');
    const bool extension = dot != path.npos && path.find('/', dot) == path.npos && dot > 0 && path[dot - 1] != '/';
    return path.insert(extension ? dot : path.size(), "-" + std::to_string(getpid()));
}

}  // namespace

std::optional<std::string> RecordWriter::open(const std::string& path, uint64_t most_bytes) {
    most_bytes_ = most_bytes;
    for (const std::string& name : {path, beside(path)}) {
        path_ = name;
        descriptor_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
        if (descriptor_ < 0) return reason(name, errno);
        struct stat status {};
        if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
            abandon();
            return "cannot record into " + name + ": it is no regular file";
        }
        if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) break;
        abandon();
    }
    if (descriptor_ < 0) return "cannot record into " + path + ": other processes do";
    if (ftruncate(descriptor_, 0) != 0) {
        const int error = errno;
        abandon();
        return reason(path_, error);
    }
    std::string header(kRecordMagic);
    header += static_cast<char>(kRecordVersion);
    if (const int error = write_all(descriptor_, header.data(), header.size())) {
        abandon();
        return reason(path_, error);
    }
    written_ = header.size();
    flushed_ = std::chrono::steady_clock::now();
    return std::nullopt;
}

void RecordWriter::add_bytes(RecordKind kind, const std::string& bytes) {
    if (descriptor_ < 0 || !failure_.empty()) return;
    constexpr size_t kHeader = 16;
    if (bytes.size() > kMostPlain - kHeader) {
        failure_ = "one event needs more than " + std::to_string(kMostPlain >> 20) + " MiB";
        return;
    }
    if (plain_.size() + bytes.size() > kMostPlain - kHeader) flush();
    plain_ += static_cast<char>(kind);
    for (uint64_t size = bytes.size();; size >>= 7) {
        plain_ += static_cast<char>(size >= 0x80 ? size | 0x80 : size);
        if (size < 0x80) break;
    }
    plain_ += bytes;
}

void RecordWriter::flush_sometimes() {
    constexpr auto kOld = std::chrono::seconds(1);
    if (plain_.size() >= kBlock || std::chrono::steady_clock::now() - flushed_ >= kOld) flush();
}

void RecordWriter::flush() {
    flushed_ = std::chrono::steady_clock::now();
    if (plain_.empty() || descriptor_ < 0) return;
    uLongf stored = compressBound(plain_.size());
    stored_.resize(kBlockHeader + stored);
    char* const begin = stored_.data();
    const int status = compress2(reinterpret_cast<Bytef*>(begin + kBlockHeader), &stored,
                                 reinterpret_cast<const Bytef*>(plain_.data()), plain_.size(), Z_BEST_SPEED);
    const size_t size = kBlockHeader + stored;
    if (status != Z_OK) {
        failure_ = "out of memory";
    } else if (written_ + size > most_bytes_) {
        failure_ = "it would be larger than " + std::to_string(most_bytes_ >> 20) + " MiB";
    } else {
        begin[0] = kBlockMark;
        put_u32(begin + 1, static_cast<uint32_t>(stored));
        put_u32(begin + 5, static_cast<uint32_t>(plain_.size()));
        const auto check = crc32(0, reinterpret_cast<const Bytef*>(begin + kBlockHeader), static_cast<uInt>(stored));
        put_u32(begin + 9, static_cast<uint32_t>(check));
        if (const int error = write_all(descriptor_, begin, size)) failure_ = std::generic_category().message(error);
        written_ += size;
    }
    plain_.clear();
}

void RecordWriter::close() {
    if (descriptor_ < 0) return;
    if (failure_.empty()) flush();
    abandon();
}

void RecordWriter::abandon() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
    plain_.clear();
}

}  // namespace numsan
