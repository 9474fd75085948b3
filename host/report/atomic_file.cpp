// write_atomically: temporary file and rename, with the signals that a full quota or a closed pipe would raise held
// back.
#include "host/report/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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
int write_all(int fd, const std::string& text) {
    size_t done = 0;
    while (done < text.size()) {
        const ssize_t count = write(fd, text.data() + done, text.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return errno;
        if (count == 0) return ENOSPC;
        done += static_cast<size_t>(count);
    }
    return 0;
}

int write_directly(const std::string& path, const std::string& text) {
    // a pipe nobody reads must not hang us
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return errno;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    const int error = write_all(fd, text);
    close(fd);
    return error;
}

std::string folder_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

std::string temporary_name(const std::string& target) {
    static std::atomic<unsigned> counter{0};
    return folder_of(target) + ".numsan-" + std::to_string(getpid()) + "-" + std::to_string(counter++) + ".tmp";
}

int replace_file(const std::string& target, const std::string& text, mode_t mode, bool keep_mode) {
    std::string temporary;
    int fd = -1;
    for (int attempt = 0; attempt < 100 && fd < 0; ++attempt) {
        temporary = temporary_name(target);
        fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) return errno;
    }
    if (fd < 0) return EEXIST;
    int error = write_all(fd, text);
    if (!error && keep_mode && fchmod(fd, mode) != 0) error = errno;
    if (close(fd) != 0 && !error) error = errno;
    if (!error && rename(temporary.c_str(), target.c_str()) != 0) error = errno;
    if (error) unlink(temporary.c_str());
    return error;
}

}  // namespace

std::optional<std::string> write_atomically(const std::string& path, const std::string& text) {
    if (path.empty()) return "cannot write a report: the path is empty";
    const HeldSignals held;
    struct stat status {};
    const bool exists = stat(path.c_str(), &status) == 0;
    if (exists && S_ISDIR(status.st_mode)) return reason(path, EISDIR);
    if (exists && !S_ISREG(status.st_mode)) {
        const int error = write_directly(path, text);
        return error ? std::optional(reason(path, error)) : std::nullopt;
    }
    std::string target = path;
    if (exists) {
        if (access(path.c_str(), W_OK) != 0) return reason(path, errno);  // read-only is meant to stay
        char resolved[PATH_MAX];
        if (realpath(path.c_str(), resolved)) target = resolved;
    }
    const int error = replace_file(target, text, status.st_mode & 07777, exists);
    if (!error) return std::nullopt;
    const std::string folder = folder_of(target);
    if (error == ENOENT && !folder.empty()) return reason(path, error) + " (the folder " + folder + " is missing)";
    return reason(path, error);
}

}  // namespace numsan
