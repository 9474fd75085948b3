// numsan run: the environment for the library, then exec, so that signals and the exit status are the program's own.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "host/cli/commands.h"
#include "host/cli/process.h"
#include "host/options/options.h"

namespace numsan::cli {
namespace {

constexpr int kCannotRun = 126;
constexpr int kNotFound = 127;

/// Whether a library of our name is in an LD_PRELOAD list (separated by ':' or blanks).
bool preloaded_already(const std::string& list) {
    constexpr std::string_view kName = "libnumsan.so";
    size_t start = 0;
    while (start <= list.size()) {
        size_t end = list.find_first_of(": ", start);
        if (end == std::string::npos) end = list.size();
        const std::string entry = list.substr(start, end - start);
        if (entry.substr(entry.rfind('/') + 1) == kName) return true;
        start = end + 1;
    }
    return false;
}

/// Sets LD_PRELOAD; false after a complaint.
bool preload_library() {
    const std::string existing = variable("LD_PRELOAD");
    if (preloaded_already(existing)) return true;
    const LibrarySearch search = find_library();
    if (search.path.empty()) {
        complain("libnumsan.so is missing; looked at " + search.places());
        return false;
    }
    if (search.path.find_first_of(": ") != std::string::npos) {
        complain("the path of the library has a blank or a ':', which LD_PRELOAD cannot hold: " + search.path);
        return false;
    }
    return set_variable("LD_PRELOAD", existing.empty() ? search.path : search.path + ":" + existing);
}

/// Refuses the first bad flag; nothing has been started or changed then.
bool check(const OptionFlags& flags) {
    Options scratch;
    for (const auto& [key, value] : flags) {
        if (const auto complaint = set_option(scratch, key, value)) {
            complain(*complaint);
            return false;
        }
    }
    return true;
}

void merge_options(const OptionFlags& flags) {
    std::string text = variable("NUMSAN_OPTIONS");  // flags come later, and the last of equal keys wins
    for (const auto& [key, value] : flags) {
        if (!text.empty()) text += ':';
        text.append(key).append("=").append(value);
    }
    if (!text.empty()) set_variable("NUMSAN_OPTIONS", text);
}

}  // namespace

int run(const OptionFlags& flags, const std::vector<std::string>& command) {
    if (!check(flags)) return kUsage;
    if (command.empty() || command.front().empty()) {
        complain("no command to run: numsan run [options] -- python train.py");
        return kUsage;
    }
    if (!preload_library()) return kUsage;
    merge_options(flags);
    const std::vector<char*> arguments = argument_vector(command);
    execvp(arguments[0], arguments.data());
    const int error = errno;
    if (error == ENOENT) {
        complain(command.front() + ": command not found");
        return kNotFound;
    }
    complain(command.front() + ": cannot be run: " + std::generic_category().message(error));
    return kCannotRun;
}

}  // namespace numsan::cli
