#include "host/options/trusted_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <deque>
#include <fstream>
#include <sstream>
#include <system_error>

#include "host/options/one_line.h"

namespace numsan {
namespace {

constexpr int kMostLinks = 40;  // as many as the kernel follows

std::string user(uid_t uid) { return "user " + std::to_string(uid); }

std::string mode_of(const struct stat& status) {
    const mode_t mode = status.st_mode & 07777;
    std::string digits = "0";
    for (int shift = 6; shift >= 0; shift -= 3) digits += static_cast<char>('0' + ((mode >> shift) & 7));
    return digits;
}

/// The owner that the kernel shows for users which a user namespace does not know: root outside of a container is one.
/// Outside of such a namespace it is a user like others.
bool is_unknown_owner(uid_t uid) {
    uid_t unknown = 65534;
    std::ifstream("/proc/sys/kernel/overflowuid") >> unknown;
    if (uid != unknown) return false;
    std::ifstream map("/proc/self/uid_map");
    uint64_t inside = 0, outside = 0, count = 0;
    bool read = false;
    while (map >> inside >> outside >> count) {
        read = true;
        if (uid >= inside && uid - inside < count) return false;
    }
    return read;
}

bool is_trusted_owner(uid_t uid) { return uid == geteuid() || uid == 0; }

TrustedPath unusable(const std::string& path, int error) {
    return {Trust::Unusable, "", path + ": " + std::generic_category().message(error), ""};
}

TrustedPath unsafe(std::string why, std::string cure) { return {Trust::Unsafe, "", std::move(why), std::move(cure)}; }

/// What others than this user and root may do with `path` itself; Trust::Yes for nothing.
TrustedPath check_own(const std::string& path, const struct stat& status) {
    if (!is_trusted_owner(status.st_uid)) {
        const std::string ours = geteuid() == 0 ? "root" : user(geteuid()) + " or root";
        return unsafe(path + " belongs to " + user(status.st_uid) + ", not to " + ours, "");
    }
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        const std::string who = (status.st_mode & S_IWOTH) != 0 ? "everybody" : "its group";
        return unsafe(path + " can be written by " + who + " (mode " + mode_of(status) + ")", "chmod go-w " + path);
    }
    return {Trust::Yes, path, "", ""};
}

/// Whether another user could put another folder in the place of what lies below `path`.
TrustedPath check_above(const std::string& path, const struct stat& status) {
    if (!is_trusted_owner(status.st_uid) && !is_unknown_owner(status.st_uid))
        return unsafe(path + " above it belongs to " + user(status.st_uid), "");
    const bool sticky = (status.st_mode & S_ISVTX) != 0;
    const bool private_group = status.st_uid == geteuid() && status.st_gid == status.st_uid;
    const bool by_group = (status.st_mode & S_IWGRP) != 0 && !private_group;
    const bool by_all = (status.st_mode & S_IWOTH) != 0;
    if (sticky || (!by_group && !by_all)) return {Trust::Yes, path, "", ""};
    const std::string who = by_all ? "everybody" : "its group";
    return unsafe(path + " above it can be written by " + who + " (mode " + mode_of(status) + ")",
                  "chmod " + std::string(by_all ? "go-w " : "g-w ") + path);
}

/// One walk from the root of the file system to what a path names, which looks at everything on the way.
class Walk {
  public:
    explicit Walk(const std::string& path) {
        std::string start = path;
        if (path.empty() || path[0] != '/') {
            char cwd[PATH_MAX];
            start = std::string(getcwd(cwd, sizeof cwd) != nullptr ? cwd : "") + "/" + path;
        }
        push_front(start);
    }

    /// Trust::Yes: status() is what is there, and no other user can exchange it.
    TrustedPath go(bool make, bool follow_last) {
        make_ = make;
        if (lstat("/", &status_) != 0) return unusable("/", errno);
        while (!left_.empty()) {
            const std::string name = left_.front();
            left_.pop_front();
            if (name == "..") {
                at_.erase(std::min(at_.rfind('/'), at_.size()));
                if (lstat(here().c_str(), &status_) != 0) return unusable(here(), errno);
                continue;
            }
            if (TrustedPath above = check_above(here(), status_); above.trust != Trust::Yes) return above;
            if (TrustedPath below = step(name, follow_last); below.trust != Trust::Yes) return below;
        }
        return {Trust::Yes, here(), "", ""};
    }

    const struct stat& status() const { return status_; }

    /// The part that is there, of a path whose rest is missing.
    std::string here() const { return at_.empty() ? "/" : at_; }

  private:
    TrustedPath step(const std::string& name, bool follow_last) {
        const std::string next = at_ + "/" + name;
        struct stat status {};
        int error = lstat(next.c_str(), &status) == 0 ? 0 : errno;
        if (error == ENOENT && make_) {
            error = mkdir(next.c_str(), 0700) == 0 || errno == EEXIST ? 0 : errno;
            if (error == 0 && lstat(next.c_str(), &status) != 0) error = errno;
        }
        if (error != 0) return unusable(next, error);
        if (S_ISLNK(status.st_mode) && (follow_last || !left_.empty())) return follow(next, status);
        if (!left_.empty() && !S_ISDIR(status.st_mode)) return unusable(next, ENOTDIR);
        at_ = next;
        status_ = status;
        return {Trust::Yes, "", "", ""};
    }

    TrustedPath follow(const std::string& link, const struct stat& status) {
        if (!is_trusted_owner(status.st_uid) && !is_unknown_owner(status.st_uid))
            return unsafe(link + " is a link of " + user(status.st_uid), "");
        if (++links_ > kMostLinks) return unusable(link, ELOOP);
        char target[PATH_MAX];
        const ssize_t length = readlink(link.c_str(), target, sizeof target);
        if (length <= 0 || length == static_cast<ssize_t>(sizeof target)) return unusable(link, ENAMETOOLONG);
        if (target[0] == '/') {
            at_.clear();
            if (lstat("/", &status_) != 0) return unusable("/", errno);
        }
        push_front(std::string(target, static_cast<size_t>(length)));
        return {Trust::Yes, "", "", ""};
    }

    void push_front(const std::string& path) {
        std::deque<std::string> names;
        std::istringstream parts(path);
        for (std::string name; std::getline(parts, name, '/');) {
            if (!name.empty() && name != ".") names.push_back(name);
        }
        left_.insert(left_.begin(), names.begin(), names.end());
    }

    std::deque<std::string> left_;  ///< names that are still to come
    std::string at_;                ///< where the walk is, without links; empty at the root
    struct stat status_ {};         ///< of what is there
    bool make_ = false;
    int links_ = 0;
};

TrustedPath on_one_line(TrustedPath path) {
    path.why = one_line(path.why, path.why.size());
    path.cure = one_line(path.cure, path.cure.size());
    return path;
}

TrustedPath look_at_folder(const std::string& path, Missing missing) {
    Walk walk(path);
    TrustedPath found = walk.go(missing == Missing::Make, true);
    if (found.trust == Trust::Unusable && missing == Missing::Accept && access(path.c_str(), F_OK) != 0 &&
        errno == ENOENT) {
        if (access(walk.here().c_str(), W_OK | X_OK) == 0) return {Trust::Yes, path, "", ""};
        return unusable(walk.here(), errno);
    }
    if (found.trust != Trust::Yes) return found;
    if (!S_ISDIR(walk.status().st_mode)) return unusable(found.resolved, ENOTDIR);
    return check_own(found.resolved, walk.status());
}

TrustedPath look_at_file(const std::string& path) {
    Walk walk(path);
    TrustedPath found = walk.go(false, false);
    if (found.trust != Trust::Yes) return found;
    if (S_ISLNK(walk.status().st_mode)) return unsafe(found.resolved + " is a link, not a file", "");
    if (!S_ISREG(walk.status().st_mode)) return unsafe(found.resolved + " is not a regular file", "");
    return check_own(found.resolved, walk.status());
}

}  // namespace

TrustedPath trusted_folder(const std::string& path, Missing missing) {
    return on_one_line(look_at_folder(path, missing));
}

TrustedPath trusted_file(const std::string& path) { return on_one_line(look_at_file(path)); }

}  // namespace numsan
