// The manual page in the language of man(7).
#include <CLI/CLI.hpp>

#include "host/base/version.h"
#include "host/cli/shell_files.h"

namespace numsan::cli {
namespace {

/// `text` as it is, whatever it begins with: a backslash and a hyphen are said otherwise there.
std::string plain(const std::string& text) {
    std::string out = text.starts_with(".") || text.starts_with("'") ? "\\&" : "";
    for (const char c : text) {
        if (c == '\\') {
            out += "\\e";
        } else if (c == '-') {
            out += "\\-";
        } else {
            out += c;
        }
    }
    return out;
}

/// One entry: a term in bold, and what it means.
std::string entry(const std::string& term, const std::string& meaning) {
    return ".TP\n\\fB" + plain(term) + "\\fR\n" + plain(meaning) + "\n";
}

/// "-o, --output": all names of an option, or that of an argument.
std::string names_of(const CLI::Option& option) {
    if (option.get_positional()) return option.get_name();
    std::string names;
    for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
    for (const std::string& name : option.get_lnames()) names += (names.empty() ? "--" : ", --") + name;
    return names;
}

std::string command_text(const CLI::App& command) {
    std::string out = ".SS numsan " + plain(command.get_name()) + "\n" + plain(command.get_description()) + "\n";
    for (const CLI::Option* option : command.get_options()) out += entry(names_of(*option), option->get_description());
    return out;
}

}  // namespace

std::string manual_page(const CLI::App& app) {
    std::string out = ".TH NUMSAN 1 \"\" \"numsan " NUMSAN_VERSION "\" \"User Commands\"\n";
    out += ".SH NAME\nnumsan \\- " + plain(app.get_description()) + "\n";
    out +=
        ".SH SYNOPSIS\n.B numsan\n\\fICOMMAND\\fR [\\fIOPTION\\fR]...\n.br\n.B numsan run\n"
        "[\\fIOPTION\\fR]... \\-\\- \\fIPROGRAM\\fR [\\fIARGUMENT\\fR]...\n";
    out += ".SH COMMANDS\n";
    for (const CLI::App* command : app.get_subcommands({})) {
        if (!command->get_group().empty()) out += command_text(*command);
    }
    out += ".SH OPTIONS\n";
    for (const CLI::Option* option : app.get_options()) out += entry(names_of(*option), option->get_description());
    out +=
        ".SH EXIT STATUS\nOf\n.BR \"numsan run\" :\nthat of the program, or what the option\n.B exitcode\nsays where\n"
        ".B fail_on\nasks for it; 2 for wrong usage; 126 and 127 as of a shell. Of the other commands: 0; 1 "
        "where `diff` has news, `replay` another report, `diagnose` a fault, or `doctor` something that would not be "
        "seen; 2 for wrong usage and for what cannot be read.\n";
    out += ".SH ENVIRONMENT\n" + entry("NUMSAN_OPTIONS", "the options of `run` as KEY=VALUE, separated by colons") +
           entry("NUMSAN_CACHE", "the folder of compiled adapters, in place of ~/.cache/numsan") +
           entry("NUMSAN_PYTHON", "the Python that `numsan doctor` asks when it is given no command") +
           entry("CXX", "the compiler of the adapter") + entry("NO_COLOR", "no colour");
    return out;
}

}  // namespace numsan::cli
