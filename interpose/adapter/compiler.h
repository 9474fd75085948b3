// Runs the C++ compiler as a child process that the host program's signal handling cannot disturb.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace numsan {

/// The command that starts a C++ compiler: $CXX (split at blanks, so "ccache g++" works) if its first word can be run,
/// else the first of c++, g++, clang++ in $PATH. Empty when there is none. The first word is a path.
std::vector<std::string> find_cxx_compiler();

/// Path of the program `name` as a shell would find it; `name` itself when it has a slash and can be run.
std::optional<std::string> find_program(const std::string& name);

/// Runs `command` to its end with stdout and stderr in `log` (truncated first), stdin empty, default signals, and an
/// environment without LD_PRELOAD. Returns its exit status, 128 + n when signal n ended it, -1 when it cannot be
/// started, and nothing when the host program's own waiting swallowed the status: judge by what the command wrote. [MT]
/// Blocks; interrupted waits go on.
std::optional<int> run_program(const std::vector<std::string>& command, const std::string& log);

}  // namespace numsan
