// The completion of bash and zsh.
#include <CLI/CLI.hpp>
#include <vector>

#include "host/cli/shell_files.h"
#include "host/diagnosis/faults.h"
#include "host/finding/mechanisms.h"
#include "host/finding/slow/slow_run.h"
#include "host/format/formats.h"
#include "host/options/options.h"

namespace numsan::cli {
namespace {

using Words = std::vector<std::string>;

/// What can stand after an option, or as an argument.
struct Values {
    Words words;         ///< these
    bool files = false;  ///< a path
};

/// The values of "one of auto, always, never" and of "0 or 1".
Words listed(const std::string& expected) {
    constexpr std::string_view kOneOf = "one of ";
    if (expected == "0 or 1") return {"0", "1"};
    Words words;
    if (!expected.starts_with(kOneOf)) return words;
    for (size_t at = kOneOf.size(); at < expected.size();) {
        const size_t end = std::min(expected.find(", ", at), expected.size());
        words.push_back(expected.substr(at, end - at));
        at = end + 2;
    }
    return words;
}

Values values_of(const std::string& command, const CLI::Option& option) {
    if (command == "run") {
        for (const OptionRow& row : option_rows()) {
            if (option.check_lname(row.key)) return {listed(row.expected), row.expected.starts_with("a path")};
        }
        return {};
    }
    if (command == "explain") {
        Values codes;
        for (const MechanismInfo& row : kMechanisms) codes.words.emplace_back(row.code);
        for (const SlowCauseInfo& row : kSlowCauses) codes.words.emplace_back(row.code);
        for (const FaultInfo& row : kFaults) codes.words.emplace_back(row.code);
        return codes;
    }
    if (option.check_lname("format")) return {formats_of(command), false};
    if (option.check_lname("color")) return {{"auto", "always", "never"}, false};
    return {{}, true};
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

Words flags_of(const CLI::Option& option) {
    Words flags;
    for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
    return flags;
}

std::string joined(const Words& words, const std::string& between) {
    std::string out;
    for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
    return out;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
    std::vector<const CLI::App*> commands;
    for (const CLI::App* command : app.get_subcommands({})) {
        if (!command->get_group().empty()) commands.push_back(command);
    }
    return commands;
}

/// A program and its arguments follow, which are not ours.
bool takes_program(const std::string& command) { return command == "run" || command == "doctor"; }

std::string bash_values(const Values& values) {
    return values.files ? "files=1" : "words='" + joined(values.words, " ") + "'";
}

/// Arms of a case over "COMMAND FLAG" and, for words that are no value of a flag, "COMMAND".
std::string bash_arms(const CLI::App& command) {
    const std::string& name = command.get_name();
    std::string out;
    Words flags;
    std::string rest = "words=";
    for (const CLI::Option* option : command.get_options()) {
        if (option->get_positional()) {
            rest = bash_values(values_of(name, *option));
            continue;
        }
        Words patterns;
        for (const std::string& flag : flags_of(*option)) {
            flags.push_back(flag);
            std::string& pattern = patterns.emplace_back("\"");
            pattern.append(name).append(" ").append(flag).append("\"");
        }
        if (takes_value(*option))
            out += "        " + joined(patterns, " | ") + ") " + bash_values(values_of(name, *option)) + " ;;\n";
    }
    if (takes_program(name)) flags.emplace_back("--");
    return out + "        \"" + name + " \"*) " + rest + " flags='" + joined(flags, " ") + "' ;;\n";
}

constexpr char kBashStart[] = R"(# Completion of numsan for bash; written by `numsan table bash`.
_numsan() {
    local word="${COMP_WORDS[COMP_CWORD]}" flag="${COMP_WORDS[COMP_CWORD - 1]}" command="${COMP_WORDS[1]}"
    local i words='' flags='' files='' programs=''
    COMPREPLY=()
    if [[ $word == "=" ]]; then word=''; elif [[ $flag == "=" ]]; then flag="${COMP_WORDS[COMP_CWORD - 2]}"; fi
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            if ((i + 1 == COMP_CWORD)); then programs=1; else files=1; fi
        fi
    done
    if [[ $files$programs == '' ]]; then
        case "$command $flag" in
)";
constexpr char kBashEnd[] = R"(        esac
    fi
    if [[ -n $programs ]]; then COMPREPLY=($(compgen -c -- "$word")); fi
    if [[ -n $files ]]; then
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "$word"))
    fi
    if [[ -n $words ]]; then COMPREPLY+=($(compgen -W "$words" -- "$word")); fi
    if [[ $word == -* ]]; then COMPREPLY+=($(compgen -W "$flags" -- "$word")); fi
}
complete -F _numsan numsan
)";

/// In single quotes, inside of brackets.
std::string zsh_text(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '\'') {
            out += "'\\''";
            continue;
        }
        if (c == '\n') {
            out += ", ";
            continue;
        }
        if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

std::string zsh_values(const std::string& what, const Values& values) {
    if (values.files) return ":" + what + ":_files";
    if (values.words.empty()) return ":" + what + ": ";
    return ":" + what + ":(" + joined(values.words, " ") + ")";
}

std::string zsh_arms(const CLI::App& command) {
    const std::string& name = command.get_name();
    std::string out = "        " + name + ")\n            _arguments -S";
    for (const CLI::Option* option : command.get_options()) {
        if (option->get_positional()) {
            out += " \\\n                '*" + zsh_values(option->get_name(), values_of(name, *option)) + "'";
            continue;
        }
        for (const std::string& flag : flags_of(*option)) {
            const bool value = takes_value(*option);
            const bool is_long = flag.starts_with("--");
            out += " \\\n                '" + flag + (value && is_long ? "=" : "") + "[" +
                   zsh_text(option->get_description()) + "]" +
                   (value ? zsh_values(zsh_text(option->get_lnames().front()), values_of(name, *option)) : "") + "'";
        }
    }
    if (takes_program(name)) out += " \\\n                '*::program:_normal'";
    return out + "\n            ;;\n";
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
    Words first;
    std::string arms;
    for (const CLI::App* command : commands_of(app)) {
        first.push_back(command->get_name());
        arms += bash_arms(*command);
    }
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& flag : flags_of(*option)) first.push_back(flag);
    }
    std::string text = kBashStart;
    const std::string at_first = "    if ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W '" +
                                 joined(first, " ") + "' -- \"$word\"))\n        return\n    fi\n";
    text.insert(text.find("    if [[ $word == \"=\" ]]"), at_first);
    return text + arms + kBashEnd;
}

std::string zsh_completion(const CLI::App& app) {
    std::string text =
        "#compdef numsan\n# Completion of numsan for zsh; written by `numsan table zsh`.\n"
        "_numsan() {\n    local -a commands=(\n";
    std::string arms;
    for (const CLI::App* command : commands_of(app)) {
        text += "        '" + command->get_name() + ":" + zsh_text(command->get_description()) + "'\n";
        arms += zsh_arms(*command);
    }
    text += "    )\n    if ((CURRENT == 2)); then\n        _describe command commands\n        _arguments";
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& flag : flags_of(*option))
            text += " \\\n            '" + flag + "[" + zsh_text(option->get_description()) + "]'";
    }
    return text +
           "\n        return\n    fi\n    local command=$words[2]\n    shift words\n    ((CURRENT--))\n"
           "    case $command in\n" +
           arms + "    esac\n}\n_numsan \"$@\"\n";
}

std::optional<std::string> shell_file(const std::string& name, const CLI::App& app) {
    if (name == "man") return manual_page(app);
    if (name == "bash") return bash_completion(app);
    if (name == "zsh") return zsh_completion(app);
    return std::nullopt;
}

}  // namespace numsan::cli
