// What a shell is told of the command: the manual page and the completion of bash and zsh, made of the parser and of
// the table of options, so that they say what the command takes.
#pragma once

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace numsan::cli {

std::string manual_page(const CLI::App& app);
std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);

/// The file of that name ("man", "bash", "zsh"), nothing for other names.
std::optional<std::string> shell_file(const std::string& name, const CLI::App& app);

}  // namespace numsan::cli
