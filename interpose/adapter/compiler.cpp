// Runs the C++ compiler as a child process that the host program's signal handling cannot disturb.
#include "interpose/adapter/compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

extern char** environ;

namespace numsan {
namespace {

bool is_executable(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

/// Without what would preload us again, and in the language in which lacked_room() knows the compiler's messages.
std::vector<char*> compiler_environment() {
    static char english[] = "LC_ALL=C";
    std::vector<char*> kept;
    for (char** entry = environ; entry && *entry; ++entry) {
        const bool left_out = std::strncmp(*entry, "LD_PRELOAD=", 11) == 0 || std::strncmp(*entry, "LC_ALL=", 7) == 0 ||
                              std::strncmp(*entry, "LANGUAGE=", 9) == 0;
        if (!left_out) kept.push_back(*entry);
    }
    kept.push_back(english);
    kept.push_back(nullptr);
    return kept;
}

/// Attributes and file actions of a child; owns both.
class SpawnSetup {
  public:
    explicit SpawnSetup(const std::string& log) {
        posix_spawnattr_init(&attributes_);
        posix_spawn_file_actions_init(&actions_);
        sigset_t defaults;
        sigset_t mask;
        sigemptyset(&defaults);
        sigemptyset(&mask);
        sigaddset(&defaults, SIGCHLD);  // a compiler driver that inherits "ignored" loses its own children's status
        sigaddset(&defaults, SIGPIPE);
        posix_spawnattr_setsigdefault(&attributes_, &defaults);
        posix_spawnattr_setsigmask(&attributes_, &mask);
        posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
        posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
    }
    ~SpawnSetup() {
        posix_spawn_file_actions_destroy(&actions_);
        posix_spawnattr_destroy(&attributes_);
    }
    SpawnSetup(const SpawnSetup&) = delete;
    SpawnSetup& operator=(const SpawnSetup&) = delete;

    const posix_spawnattr_t* attributes() const { return &attributes_; }
    const posix_spawn_file_actions_t* actions() const { return &actions_; }

  private:
    posix_spawnattr_t attributes_;
    posix_spawn_file_actions_t actions_;
};

}  // namespace

std::optional<std::string> find_program(const std::string& name) {
    if (name.empty()) return std::nullopt;
    if (name.find('/') != std::string::npos) return is_executable(name) ? std::optional(name) : std::nullopt;
    const char* path = secure_getenv("PATH");
    std::istringstream folders(path ? path : "/usr/local/bin:/usr/bin:/bin");
    for (std::string folder; std::getline(folders, folder, ':');) {
        std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
        if (is_executable(candidate)) return candidate;
    }
    return std::nullopt;
}

std::vector<std::string> find_cxx_compiler() {
    if (const char* cxx = secure_getenv("CXX")) {
        std::istringstream words(cxx);
        std::vector<std::string> command;
        for (std::string word; words >> word;) command.push_back(word);
        if (!command.empty()) {
            if (auto program = find_program(command.front())) {
                command.front() = *program;
                return command;
            }
        }
    }
    for (const char* name : {"c++", "g++", "clang++"})
        if (auto program = find_program(name)) return {*program};
    return {};
}

std::optional<int> run_program(const std::vector<std::string>& command, const std::string& log) {
    if (command.empty()) return -1;
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::vector<char*> environment = compiler_environment();
    const SpawnSetup setup(log);
    pid_t child = 0;
    if (posix_spawn(&child, arguments[0], setup.actions(), setup.attributes(), arguments.data(), environment.data()) !=
        0)
        return -1;
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return std::nullopt;  // ECHILD: SIGCHLD is ignored, or a handler waited for every child
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace numsan
