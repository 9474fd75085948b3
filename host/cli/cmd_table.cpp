// numsan table: the tables that the documentation copies, as GitHub markdown.
#include <cmath>
#include <cstdio>

#include "host/cli/commands.h"
#include "host/diagnosis/faults.h"
#include "host/finding/help_line.h"
#include "host/finding/mechanisms.h"
#include "host/finding/slow/slow_run.h"
#include "host/finding/tables.h"
#include "host/format/formats.h"
#include "host/options/options.h"

namespace numsan::cli {
namespace {

std::string categories_markdown() {
    std::string out = "| id | slug | name | definition |\n| --- | --- | --- | --- |\n";
    for (const Category& row : categories()) {
        out += std::string("| ") + row.id + " | " + row.slug + " | " + row.name + " | " + row.definition + " |\n";
    }
    return out;
}

std::string mechanisms_markdown() {
    std::string out = "| code | mechanism | name | meaning |\n| --- | --- | --- | --- |\n";
    for (const MechanismInfo& row : kMechanisms) {
        out += std::string("| ") + row.code + " | " + row.id + " | " + row.name + " | " + row.meaning + " |\n";
    }
    return out;
}

std::string fixes_markdown() {
    std::string out = "| kind | what changes |\n| --- | --- |\n";
    for (const FixKind& row : kFixKinds) out += std::string("| ") + row.id + " | " + row.meaning + " |\n";
    return out;
}

std::string thresholds_markdown() {
    std::string out = "| threshold | value | meaning | where it comes from |\n| --- | --- | --- | --- |\n";
#define NUMSAN_THRESHOLD(name, type, value, meaning, reason) \
    out += "| " #name " | " #value " | " meaning " | " reason " |\n";
#include "host/base/thresholds.def"
#undef NUMSAN_THRESHOLD
    return out;
}

std::string evidence_markdown() {
    std::string out = "| category | evidence | weight | applies where |\n| --- | --- | --- | --- |\n";
#define NUMSAN_EVIDENCE(id, category, weight, meaning) \
    out += "| " category " | " #id " | " #weight " | " meaning " |\n";
#include "host/cause/evidence.def"
#undef NUMSAN_EVIDENCE
    return out;
}

std::string slow_markdown() {
    std::string out =
        "| code | cause | what it is | how it is measured | least share of a step |\n"
        "| --- | --- | --- | --- | --- |\n";
    for (const SlowCauseInfo& row : kSlowCauses) {
        const long percent = std::lround(100 * row.least_share);
        out += std::string("| ") + row.code + " | " + row.slug + " | " + row.title + " | " + row.meaning + " | " +
               std::to_string(percent) + " % |\n";
    }
    return out;
}

std::string faults_markdown() {
    std::string out = "| code | slug | fault | meaning |\n| --- | --- | --- | --- |\n";
    for (const FaultInfo& row : kFaults)
        out += std::string("| ") + row.code + " | " + row.slug + " | " + row.name + " | " + row.meaning + " |\n";
    return out;
}

std::string signals_markdown() {
    std::string out = "| of | key | unit | source | meaning |\n| --- | --- | --- | --- | --- |\n";
    const auto add = [&](const char* subject, const char* key, const char* unit, const char* source,
                         const char* meaning) {
        out += std::string("| ") + subject + " | `" + key + "` | " + unit + " | " + source + " | " + meaning + " |\n";
    };
#define NUMSAN_RUN_SIGNAL(key, member, unit, source, meaning) add("run", key, unit, source, meaning);
#define NUMSAN_PARAMETER_SIGNAL(key, member, unit, source, meaning) add("parameter", key, unit, source, meaning);
#define NUMSAN_ACTIVATION_SIGNAL(key, member, unit, source, meaning) add("activation", key, unit, source, meaning);
#include "host/diagnosis/signals.def"
    return out;
}

std::string formats_markdown() {
    std::string out = "| format | commands | what it is |\n| --- | --- | --- |\n";
    for (const FormatInfo& row : kFormats) {
        std::string commands = row.commands;
        for (size_t at = 0; (at = commands.find(' ', at)) != std::string::npos; at += 2) commands.replace(at, 1, ", ");
        out += std::string("| ") + row.name + " | " + commands + " | " + row.description + " |\n";
    }
    return out;
}

}  // namespace

int table(const std::string& name) {
    std::string text;
    if (name == "options") text = options_table_markdown();
    if (name == "categories") text = categories_markdown();
    if (name == "mechanisms") text = mechanisms_markdown();
    if (name == "fixes") text = fixes_markdown();
    if (name == "thresholds") text = thresholds_markdown();
    if (name == "evidence") text = evidence_markdown();
    if (name == "faults") text = faults_markdown();
    if (name == "signals") text = signals_markdown();
    if (name == "formats") text = formats_markdown();
    if (name == "slow") text = slow_markdown();
    if (text.empty()) {
        complain("no table '" + name +
                 "': expected options, categories, mechanisms, evidence, faults, fixes, formats, signals, slow, "
                 "thresholds, man, bash or zsh");
        return kUsage;
    }
    std::fputs(text.c_str(), stdout);
    return kOk;
}

}  // namespace numsan::cli
