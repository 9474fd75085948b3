// posix_spawn and path lookups for the command line.
#include "host/cli/process.h"

#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "host/options/adapter_name.h"
#include "host/options/cache_folder.h"

extern char** environ;

namespace numsan::cli {
namespace {

bool runnable(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

std::string read_all(int fd) {
    std::string out;
    char buffer[4096];
    for (;;) {
        const ssize_t count = read(fd, buffer, sizeof(buffer));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return out;
        out.append(buffer, static_cast<size_t>(count));
    }
}

int exit_status_of(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Without what is preloaded here.
std::vector<char*> child_environment() {
    std::vector<char*> environment;
    for (char** entry = environ; entry && *entry; ++entry) {
        if (std::strncmp(*entry, "LD_PRELOAD=", 11) != 0) environment.push_back(*entry);
    }
    environment.push_back(nullptr);
    return environment;
}

}  // namespace

std::string own_folder() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
    if (length <= 0) return "";
    const std::string self(path, static_cast<size_t>(length));
    return self.substr(0, self.rfind('/'));
}

std::string LibrarySearch::places() const {
    std::string text;
    for (const std::string& place : looked_at) text += (text.empty() ? "" : ", ") + place;
    return text;
}

LibrarySearch find_library() {
    LibrarySearch search;
    // Where the build leaves it, and where cmake --install puts it.
    for (const char* place : {"../lib", NUMSAN_INSTALLED_LIBRARIES}) {
        const std::string candidate = own_folder() + "/" + place + "/libnumsan.so";
        search.looked_at.push_back(candidate);
        char resolved[PATH_MAX];
        if (access(candidate.c_str(), R_OK) == 0 && realpath(candidate.c_str(), resolved)) {
            search.path = resolved;
            break;
        }
    }
    return search;
}

std::vector<std::string> prebuilt_torches() {
    const std::string library = find_library().path;
    return library.empty() ? std::vector<std::string>{}
                           : torches_of_adapters(library.substr(0, library.rfind('/') + 1) + kPrebuiltFolder);
}

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

bool set_variable(const char* name, const std::optional<std::string>& value) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): this process has one thread
    return (value ? setenv(name, value->c_str(), 1) : unsetenv(name)) == 0;
}

std::vector<char*> argument_vector(const std::vector<std::string>& command) {
    std::vector<char*> words;
    words.reserve(command.size() + 1);
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    return words;
}

std::optional<std::string> find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) return runnable(name) ? std::optional(name) : std::nullopt;
    const char* path = std::getenv("PATH");
    std::string rest = path ? path : "/usr/local/bin:/usr/bin:/bin";
    while (true) {
        const size_t end = rest.find(':');
        const std::string folder = rest.substr(0, end);
        const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
        if (runnable(candidate)) return candidate;
        if (end == std::string::npos) return std::nullopt;
        rest = rest.substr(end + 1);
    }
}

Answer ask(const std::vector<std::string>& command) {
    Answer answer;
    int ends[2];
    if (command.empty() || pipe2(ends, O_CLOEXEC) != 0) return answer;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const std::vector<char*> arguments = argument_vector(command);
    const std::vector<char*> environment = child_environment();
    pid_t child = -1;
    const int error = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error == 0) {
        answer.output = read_all(ends[0]);
        answer.status = exit_status_of(child);
    }
    close(ends[0]);
    return answer;
}

int call(const std::vector<std::string>& command) {
    if (command.empty()) return -1;
    const std::vector<char*> arguments = argument_vector(command);
    const std::vector<char*> environment = child_environment();
    pid_t child = -1;
    if (posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environment.data()) != 0) return -1;
    return exit_status_of(child);
}

}  // namespace numsan::cli
