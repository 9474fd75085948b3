// The numsan command: reads the command line and calls one command.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

#include "host/base/version.h"
#include "host/cli/commands.h"
#include "host/cli/process.h"
#include "host/cli/shell_files.h"
#include "host/format/formats.h"
#include "host/log/log.h"
#include "host/options/nearest.h"
#include "host/options/one_line.h"
#include "host/options/options.h"

namespace numsan::cli {
namespace {

using Words = std::vector<std::string>;

/// What is ours and what belongs to the program that is to run.
struct SplitLine {
    Words ours;
    Words command;
};

/// Ours ends at "--", or at the first word that is neither a flag nor a flag's value. `values` says whether flags take
/// one.
SplitLine split_command(const Words& words, bool values) {
    SplitLine split;
    split.ours.push_back(words.front());
    size_t i = 1;
    while (i < words.size() && words[i].size() > 1 && words[i][0] == '-' && words[i] != "--") {
        const bool takes_value =
            values && words[i].starts_with("--") && words[i] != "--help" && words[i].find('=') == std::string::npos;
        split.ours.push_back(words[i++]);
        if (takes_value && i < words.size() && words[i] != "--") split.ours.push_back(words[i++]);
    }
    if (i < words.size() && words[i] == "--") ++i;
    split.command.assign(words.begin() + static_cast<ptrdiff_t>(i), words.end());
    return split;
}

/// The values that the flags of `run` were given, by key.
using FlagValues = std::map<std::string, std::string>;

std::string dashed(std::string key) {
    for (char& c : key) {
        if (c == '_') c = '-';
    }
    return key;
}

void add_option_flags(CLI::App& run_command, FlagValues& values) {
    for (const OptionRow& row : option_rows()) {
        std::string names = "--" + row.key;
        if (dashed(row.key) != row.key) names += ",--" + dashed(row.key);
        const std::string about =
            row.meaning + "; " + row.expected + (row.initial.empty() ? "" : ", default " + row.initial);
        run_command.add_option(names, values[row.key], about)->type_name("")->take_last();
    }
}

OptionFlags given_flags(const CLI::App& run_command, const FlagValues& values) {
    OptionFlags flags;
    for (const OptionRow& row : option_rows()) {
        if (run_command.count("--" + row.key) > 0) flags.emplace_back(row.key, values.at(row.key));
    }
    return flags;
}

/// The first flag of `run` that is not in the table, without dashes and value; empty when there is none.
std::string unknown_flag(const Words& ours) {
    for (size_t i = 1; i < ours.size(); ++i) {
        if (!ours[i].starts_with("--") || ours[i] == "--help") continue;
        std::string name = ours[i].substr(2, ours[i].find('=') - 2);
        bool known = false;
        for (const OptionRow& row : option_rows()) known = known || name == row.key || name == dashed(row.key);
        if (!known) return name;
        if (ours[i].find('=') == std::string::npos) ++i;
    }
    return "";
}

int refuse_flag(const std::string& name) {
    Words known;
    for (const OptionRow& row : option_rows()) known.push_back(row.key);
    complain("unknown option '--" + name + "'; did you mean '--" + nearest(name, known) +
             "'? `numsan run --help` lists all");
    return kUsage;
}

bool known_command(const std::string& name) {
    for (const char* known : {"report", "diff", "history", "merge", "diagnose", "explain", "replay", "table"}) {
        if (name == known) return true;
    }
    return false;
}

int refuse_command(const std::string& name) {
    complain("unknown command '" + name + "'; did you mean '" +
             nearest(name, {"run", "report", "diff", "history", "merge", "diagnose", "explain", "replay", "doctor"}) +
             "'?");
    return kUsage;
}

int usage_error(const CLI::ParseError& error) {
    std::string text = error.what();
    for (char& c : text) {
        if (c == '\n') c = ' ';
    }
    complain(text + "; `numsan --help` says more");
    return kUsage;
}

/// The flags of commands that make a document.
struct DocumentFlags {
    std::string format = "text";
    std::string output;
    std::string color = "auto";
};

void add_document_flags(CLI::App& command, const std::string& name, DocumentFlags& flags) {
    std::string formats;
    for (const FormatInfo& row : kFormats) {
        if (format_of(name, row.name))
            formats += std::string(formats.empty() ? "" : "\n") + row.name + ": " + row.description;
    }
    command.add_option("--format", flags.format, formats)->type_name("NAME");
    command.add_option("-o,--output", flags.output, "write there instead of to stdout")->type_name("PATH");
    command.add_option("--color", flags.color, "auto, always or never")
        ->check(CLI::IsMember({"auto", "always", "never"}));
}

std::string version_text() {
    std::string torches;
    for (const std::string& version : prebuilt_torches()) torches += (torches.empty() ? " " : ", ") + version;
    return "numsan " NUMSAN_VERSION "\nadapters: " +
           (torches.empty() ? "compiled on first use, and cached"
                            : "prebuilt for torch" + torches + "; for others compiled on first use, and cached");
}

int dispatch(Words words) {
    CLI::App app{"numsan finds the first operation that made a NaN, an infinity, an overflow or an underflow"};
    app.name("numsan");
    app.set_version_flag("--version", version_text);
    app.require_subcommand(1);

    CLI::App* run_command =
        app.add_subcommand("run", "run a program under the library: numsan run [options] -- CMD...");
    FlagValues values;
    add_option_flags(*run_command, values);

    CLI::App* report_command = app.add_subcommand("report", "show or convert reports");
    Words files;
    DocumentFlags document;
    report_command->add_option("FILE", files, "reports, and folders of reports (their *.json)")->required();
    add_document_flags(*report_command, "report", document);

    CLI::App* diff_command = app.add_subcommand("diff", "what is new in a run: numsan diff BASE NEW");
    std::string base;
    std::string now;
    diff_command->add_option("BASE", base, "a report, or a folder of reports")->required();
    diff_command->add_option("NEW", now, "a report, or a folder of reports")->required();
    add_document_flags(*diff_command, "diff", document);

    CLI::App* history_command =
        app.add_subcommand("history", "findings over many nights: since when, and how they moved");
    std::string nights;
    history_command->add_option("FOLDER", nights, "of reports, a night each, or of folders of reports")->required();
    add_document_flags(*history_command, "history", document);

    CLI::App* merge_command =
        app.add_subcommand("merge", "the reports of a job's ranks as one: which rank was first, and who only received");
    merge_command->add_option("FILE", files, "reports, and folders of reports (their *.json)")->required();
    add_document_flags(*merge_command, "merge", document);

    CLI::App* diagnose_command =
        app.add_subcommand("diagnose", "ranked training faults of a run with `--diagnose 1`: evidence, line, change");
    std::string diagnosed;
    diagnose_command->add_option("FILE", diagnosed, "a report of such a run")->required();
    bool features = false;
    CLI::Option* features_flag = diagnose_command->add_flag(
        "--features", features, "the numbers that the learned model reads, as JSON, and no faults");
    add_document_flags(*diagnose_command, "diagnose", document);
    features_flag->excludes(diagnose_command->get_option("--format"));

    CLI::App* explain_command = app.add_subcommand("explain", "what a code or a category means and how to fix it");
    std::string word;
    explain_command->add_option("CODE", word, "NS102, SING, N3, unsafe-gradient, ...")->required();

    CLI::App* replay_command = app.add_subcommand(
        "replay", "run the op of a dump again, or make the report of a recording again, without torch");
    ReplayFlags replayed;
    replay_command
        ->add_option("FILE", replayed.path,
                     "what `numsan run --dump FOLDER` wrote for a finding, or `numsan run --record FILE` of a run")
        ->required();
    replay_command->add_flag("--try", replayed.trials, "of a dump: apply each help line, and say whether it helps");
    replay_command->add_option("--script", replayed.script, "of a dump: write a program there that needs torch alone")
        ->type_name("PATH");
    replay_command->add_option("--format", replayed.format, "of a dump: text or json")
        ->check(CLI::IsMember({"text", "json"}))
        ->type_name("NAME");
    replay_command
        ->add_option("-o,--output", replayed.output, "write the report of a recording there, or what a dump shows")
        ->type_name("PATH");

    CLI::App* doctor_command =
        app.add_subcommand("doctor", "what would be seen on this machine: numsan doctor [-- CMD...]");
    CLI::App* table_command = app.add_subcommand("table", "")->group("");
    std::string table_name;
    table_command->add_option("NAME", table_name)->required();

    Words command;
    if (!words.empty() && (words.front() == "run" || words.front() == "doctor")) {
        SplitLine split = split_command(words, words.front() == "run");
        words = std::move(split.ours);
        command = std::move(split.command);
        const std::string unknown = words.front() == "run" ? unknown_flag(words) : "";
        if (!unknown.empty()) return refuse_flag(unknown);
    } else if (!words.empty() && !words.front().starts_with("-") && !known_command(words.front())) {
        return refuse_command(words.front());
    }
    try {
        std::vector<std::string> reversed(words.rbegin(), words.rend());  // CLI11 takes vectors from the back
        app.parse(std::move(reversed));
    } catch (const CLI::Success& success) {
        return app.exit(success);
    } catch (const CLI::ParseError& error) {
        return usage_error(error);
    }
    if (run_command->parsed()) return run(given_flags(*run_command, values), command);
    if (report_command->parsed()) return report(files, document.format, document.output, document.color);
    if (diff_command->parsed()) return diff(base, now, document.format, document.output, document.color);
    if (history_command->parsed()) return history(nights, document.format, document.output, document.color);
    if (merge_command->parsed()) return merge(files, document.format, document.output, document.color);
    if (diagnose_command->parsed()) {
        return features ? diagnosed_features(diagnosed, document.output)
                        : diagnose(diagnosed, document.format, document.output, document.color);
    }
    if (explain_command->parsed()) return explain(word);
    if (replay_command->parsed()) return replay(replayed);
    if (doctor_command->parsed()) return doctor(command);
    if (const auto text = shell_file(table_name, app)) {
        std::fputs(text->c_str(), stdout);
        return kOk;
    }
    return table(table_name);
}

}  // namespace

void complain(const std::string& line) { stderr_log().line(Level::Always, one_line(line, line.size())); }

}  // namespace numsan::cli

int main(int argc, char** argv) {
    try {
        return numsan::cli::dispatch(std::vector<std::string>(argv + 1, argv + argc));
    } catch (const std::exception& error) {
        numsan::cli::complain(error.what());
        return numsan::cli::kUsage;
    }
}
