// write_atomically: temporary file and rename, with the signals that a full quota or a closed pipe would raise held
// back. What another user has put in the way is not followed.
#include "host/report/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <system_error>

#include "host/report/held_signals.h"

namespace numsan {
namespace {

std::string reason(const std::string& path, int error) {
    return "cannot write " + path + ": " + std::generic_category().message(error);
}

/// 0, or the errno of what failed.
int write_all(int fd, const char* data, size_t bytes) {
    constexpr size_t kMost = size_t(1) << 30;  // of one call
    size_t done = 0;
    while (done < bytes) {
        const ssize_t count = write(fd, data + done, std::min(bytes - done, kMost));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return errno;
        if (count == 0) return ENOSPC;
        done += static_cast<size_t>(count);
    }
    return 0;
}

int write_zeros(int fd, size_t bytes) {
    if (lseek(fd, static_cast<off_t>(bytes), SEEK_CUR) >= 0) {
        const off_t end = lseek(fd, 0, SEEK_CUR);
        return end >= 0 && ftruncate(fd, end) == 0 ? 0 : errno;
    }
    static constexpr char kZeros[4096] = {};
    for (int error = 0; bytes > 0; bytes -= std::min(bytes, sizeof kZeros)) {
        error = write_all(fd, kZeros, std::min(bytes, sizeof kZeros));
        if (error != 0) return error;
    }
    return 0;
}

int write_all(int fd, const std::vector<FilePart>& parts) {
    for (const FilePart& part : parts) {
        const int error = part.data != nullptr ? write_all(fd, static_cast<const char*>(part.data), part.bytes)
                                               : write_zeros(fd, part.bytes);
        if (error != 0) return error;
    }
    return 0;
}

/// Keeps a link out that appeared since `there` was looked at.
int no_new_link(const struct stat& there) { return S_ISLNK(there.st_mode) ? 0 : O_NOFOLLOW; }

/// Of `path` itself, links not followed; all zero where there is nothing.
struct stat entry_at(const std::string& path) {
    struct stat entry {};
    if (lstat(path.c_str(), &entry) != 0) entry = {};
    return entry;
}

int write_directly(const std::string& path, const std::vector<FilePart>& parts, const struct stat& there) {
    // a pipe without a reader must not block
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | no_new_link(there));
    if (fd < 0) return errno;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    const int error = write_all(fd, parts);
    close(fd);
    return error;
}

std::string folder_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

/// What another user has put at `path`, by which that user would say where we write: a link, or in a folder that
/// everybody may write (/tmp for one) a pipe or a device. Empty where there is none.
std::string planted_by_another(const std::string& path, const struct stat& there) {
    if (there.st_mode == 0 || there.st_uid == geteuid() || there.st_uid == 0) return "";
    const std::string owner = "user " + std::to_string(there.st_uid);
    if (S_ISLNK(there.st_mode)) return "it is a link of " + owner + ", which is not followed";
    if (S_ISREG(there.st_mode) || S_ISDIR(there.st_mode)) return "";
    struct stat folder {};
    const std::string name = folder_of(path);
    const bool shared = stat(name.empty() ? "." : name.c_str(), &folder) == 0 && (folder.st_mode & S_IWOTH) != 0;
    return shared ? "it is a pipe or a device of " + owner + " in a folder that everybody may write" : "";
}

std::string temporary_name(const std::string& target) {
    static std::atomic<unsigned> counter{0};
    return folder_of(target) + ".numsan-" + std::to_string(getpid()) + "-" + std::to_string(counter++) + ".tmp";
}

int replace_file(const std::string& target, const std::vector<FilePart>& parts, mode_t mode, bool keep_mode) {
    std::string temporary;
    int fd = -1;
    for (int attempt = 0; attempt < 100 && fd < 0; ++attempt) {
        temporary = temporary_name(target);
        fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) return errno;
    }
    if (fd < 0) return EEXIST;
    int error = write_all(fd, parts);
    if (!error && keep_mode && fchmod(fd, mode) != 0) error = errno;
    if (close(fd) != 0 && !error) error = errno;
    if (!error && rename(temporary.c_str(), target.c_str()) != 0) error = errno;
    if (error) unlink(temporary.c_str());
    return error;
}

}  // namespace

std::optional<std::string> write_atomically(const std::string& path, const std::string& text) {
    return write_atomically(path, std::vector<FilePart>{{text.data(), text.size()}});
}

std::optional<std::string> write_atomically(const std::string& path, const std::vector<FilePart>& parts) {
    if (path.empty()) return "cannot write a report: the path is empty";
    const HeldSignals held;
    const struct stat there = entry_at(path);
    if (const std::string what = planted_by_another(path, there); !what.empty())
        return "cannot write " + path + ": " + what;
    struct stat status {};
    const bool exists = stat(path.c_str(), &status) == 0;
    if (exists && S_ISDIR(status.st_mode)) return reason(path, EISDIR);
    if (exists && !S_ISREG(status.st_mode)) {
        const int error = write_directly(path, parts, there);
        return error ? std::optional(reason(path, error)) : std::nullopt;
    }
    std::string target = path;
    if (exists) {
        if (access(path.c_str(), W_OK) != 0) return reason(path, errno);  // read-only is meant to stay
        char resolved[PATH_MAX];
        if (S_ISLNK(there.st_mode) && realpath(path.c_str(), resolved)) target = resolved;
    }
    // Of another user's file no permission is taken over by which others could change ours.
    const mode_t kept = status.st_uid == geteuid() ? 0777 : 0755;
    const int error = replace_file(target, parts, status.st_mode & kept, exists);
    if (!error) return std::nullopt;
    const std::string folder = folder_of(target);
    if (error == ENOENT && !folder.empty()) return reason(path, error) + " (the folder " + folder + " is missing)";
    return reason(path, error);
}

int open_to_append(const std::string& path) {
    const struct stat there = entry_at(path);
    if (!planted_by_another(path, there).empty()) return -1;
    return open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | no_new_link(there), 0644);
}

}  // namespace numsan
