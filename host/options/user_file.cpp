#include "host/options/user_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace numsan {
namespace {

/// Closed wherever a function ends.
class Descriptor {
  public:
    explicit Descriptor(const std::string& path) : number_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
    ~Descriptor() {
        if (number_ >= 0) close(number_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int number() const { return number_; }

  private:
    const int number_;
};

std::string read_error() { return "was not read: " + std::generic_category().message(errno); }

/// Of a file that is open: as UserFile::problem.
std::string read_open(int fd, std::string& text) {
    constexpr const char* too_large = "is larger than 1 MiB";
    struct stat facts {};
    if (fstat(fd, &facts) != 0) return read_error();
    if (!S_ISREG(facts.st_mode)) return "is not a regular file";
    if (static_cast<size_t>(facts.st_size) > UserFile::kLargest) return too_large;
    char buffer[4096];
    ssize_t got = 0;
    while ((got = ::read(fd, buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR)) {
        if (got > 0) text.append(buffer, static_cast<size_t>(got));
        if (text.size() > UserFile::kLargest) return too_large;  // it has grown meanwhile
    }
    return got < 0 ? read_error() : "";
}

}  // namespace

UserFile read_user_file(const std::string& path) {
    UserFile file;
    const Descriptor there(path);
    file.problem = there.number() < 0 ? read_error() : read_open(there.number(), file.text);
    if (!file.problem.empty()) file.text.clear();
    return file;
}

}  // namespace numsan
