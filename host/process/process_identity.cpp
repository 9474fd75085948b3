#include "host/process/process_identity.h"

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <optional>

namespace numsan {
namespace {

std::string link_target(const char* path) {
    char text[256];
    const ssize_t size = readlink(path, text, sizeof text);
    return size > 0 && size < ssize_t(sizeof text) ? std::string(text, static_cast<size_t>(size)) : std::string();
}

/// Field 22 of /proc/PID/stat; empty where it cannot be read. The name before it may hold blanks and parentheses.
std::string start_of(const std::string& pid) {
    std::ifstream in("/proc/" + pid + "/stat");
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    size_t at = text.rfind(')');
    if (at == text.npos) return {};
    for (int field = 2; field < 22; ++field) {
        at = text.find(' ', at + 1);
        if (at == text.npos) return {};
    }
    return text.substr(at + 1, text.find(' ', at + 1) - at - 1);
}

/// "BOOT/NAMESPACE/" of this process.
std::string here() {
    std::ifstream in("/proc/sys/kernel/random/boot_id");
    std::string boot;
    std::getline(in, boot);
    const std::string space = link_target("/proc/self/ns/pid");  // "pid:[4026531836]"
    // The /proc of another namespace has other numbers.
    if (boot.empty() || space.empty() || link_target("/proc/self") != std::to_string(getpid())) return {};
    return boot + "/" + space.substr(space.find('[') + 1, space.find(']') - space.find('[') - 1) + "/";
}

}  // namespace

std::string process_identity() {
    const std::string place = here();
    const std::string start = start_of("self");
    return place.empty() || start.empty() ? std::string() : place + start;
}

bool has_ended(int64_t pid, const std::string& identity) {
    const std::string place = here();
    if (pid <= 0 || place.empty() || identity.rfind(place, 0) != 0) return false;
    if (kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return true;
    const std::string start = start_of(std::to_string(pid));
    return !start.empty() && place + start != identity;  // the number is another's by now
}

bool is_own(const ReportOwner& owner, const RunSummary& mine) {
    return mine.process.empty() ? owner.pid == mine.pid : owner.process == mine.process;
}

bool is_left_over(const std::string& path, const RunSummary& mine) {
    constexpr off_t kMostBytes = 16 << 20;  // nothing larger is read while a program starts
    struct stat status {};
    if (stat(path.c_str(), &status) == 0 && status.st_size > kMostBytes) return false;
    const std::optional<ReportOwner> owner = owner_of_report(path);
    if (!owner) return false;
    const bool own = !mine.process.empty() && is_own(*owner, mine);  // before it ran another program
    return own || has_ended(owner->pid, owner->process);
}

}  // namespace numsan
