// Finding our own files and other programs, and asking programs questions.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace numsan::cli {

/// Folder of the running executable, links resolved; empty when the system does not say.
std::string own_folder();

/// libnumsan.so as seen from this executable, in a build or installed, with the places that were looked at.
struct LibrarySearch {
    std::string path;  ///< empty when not found
    std::vector<std::string> looked_at;

    /// Those places in one line.
    std::string places() const;
};
LibrarySearch find_library();

/// Versions of torch whose adapters lie beside the library, sorted.
std::vector<std::string> prebuilt_torches();

/// A variable of the environment; empty when it is not set.
std::string variable(const char* name);

/// Sets a variable of the environment, nullopt removes it; false when there is no memory. The command has one thread.
bool set_variable(const char* name, const std::optional<std::string>& value);

/// Words as exec takes them, with a null at the end. They point into `command`.
std::vector<char*> argument_vector(const std::vector<std::string>& command);

/// Path of a program as execvp would find it.
std::optional<std::string> find_program(const std::string& name);

/// What a program said.
struct Answer {
    int status = -1;  ///< exit status, 128 + n for signal n, -1 when it could not be started
    std::string output;
};

/// Runs `command` without LD_PRELOAD, stdin and stderr at /dev/null, and collects its stdout.
Answer ask(const std::vector<std::string>& command);

/// Runs `command` without LD_PRELOAD and with our stdin, stdout and stderr; its status as in Answer.
int call(const std::vector<std::string>& command);

}  // namespace numsan::cli
