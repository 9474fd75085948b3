// Pages from the tables of pages and the tables of categories and mechanisms.
#include "host/explain/explain.h"

#include <cctype>
#include <vector>

#include "host/diagnosis/faults.h"
#include "host/finding/mechanisms.h"
#include "host/finding/slow/slow_run.h"
#include "host/finding/tables.h"
#include "host/options/nearest.h"

namespace numsan {
namespace {

/// A row of the tables of pages.
struct Page {
    std::string_view id;
    const char* arises;
    const char* fix;
    const char* unseen;  ///< why the program does not show it; empty when it does
    const char* program;
    const char* fixed;
};

constexpr Page kPages[] = {
#define NUMSAN_EXPLAIN(id, arises, fix, unseen, program, fixed) {id, arises, fix, unseen, program, fixed},
#include "host/explain/categories.def"
#include "host/explain/faults.def"
#include "host/explain/learned_faults.def"
#include "host/explain/loop_faults.def"
#include "host/explain/mechanisms.def"
#include "host/explain/slow_causes.def"
#include "host/explain/slow_waits.def"
#include "host/explain/start_faults.def"
#undef NUMSAN_EXPLAIN
};

std::string lower(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

std::string indented(std::string_view text) {
    std::string out;
    while (!text.empty() && text.front() == '\n') text.remove_prefix(1);
    while (!text.empty()) {
        const size_t end = text.find('\n');
        out += "    " + std::string(text.substr(0, end)) + "\n";
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return out;
}

/// Text of the tables, which have no line breaks, as wide as the pages.
std::string wrapped(std::string text) {
    constexpr size_t kColumns = 96;
    for (size_t start = 0; text.size() - start > kColumns;) {
        const size_t blank = text.rfind(' ', start + kColumns);
        if (blank == std::string::npos || blank < start) break;
        text[blank] = '\n';
        start = blank + 1;
    }
    return text;
}

std::string page(const std::string& id, const std::string& heading, const std::string& meaning) {
    std::string out = heading + "\n\n" + indented(wrapped(meaning));
    for (const Page& row : kPages) {
        if (row.id != id) continue;
        out += "\nhow it arises\n" + indented(row.arises) + "\nhow to fix it\n" + indented(row.fix);
        if (*row.unseen != '\0') out += "\nwhat numsan cannot see\n" + indented(row.unseen);
        out +=
            "\na program that has it\n" + indented(row.program) + "\nthe same program, healthy\n" + indented(row.fixed);
    }
    return out;
}

std::string more_line(const Category& row) {
    return std::string("\nmore, in numsan's sources\n    docs/categories/") + row.id +
           ".md: how it looks in training, real threads, what it is taken for\n";
}

std::string taxonomy_line(const Category& row) {
    const std::string taxonomy = row.taxonomy;
    return taxonomy == "none" ? ""
                              : "\nin the taxonomy of real faults in deep-learning systems\n    " + taxonomy + "\n";
}

}  // namespace

Explanation explain_word(const std::string& word) {
    const std::string wanted = lower(word);
    std::vector<std::string> known;
    for (const MechanismInfo& row : kMechanisms) {
        if (wanted == lower(row.code) || wanted == lower(row.id)) {
            return {page(row.id, std::string(row.code) + " " + row.id + ": " + row.name, row.meaning), ""};
        }
        known.insert(known.end(), {row.code, row.id});
    }
    for (const Category& row : categories()) {
        if (wanted == lower(row.id) || wanted == row.slug) {
            return {page(row.id, std::string(row.id) + " " + row.slug + ": " + row.name, row.definition) +
                        taxonomy_line(row) + more_line(row),
                    ""};
        }
        known.insert(known.end(), {row.id, row.slug});
    }
    for (const SlowCauseInfo& row : kSlowCauses) {
        if (wanted == lower(row.code) || wanted == row.slug)
            return {page(row.code, std::string(row.code) + " " + row.slug + ": " + row.title, row.meaning), ""};
        known.insert(known.end(), {row.code, row.slug});
    }
    for (const FaultInfo& row : kFaults) {
        if (wanted == lower(row.code) || wanted == row.slug) {
            return {
                page(row.code, std::string(row.code) + " " + row.slug + ": " + row.name, row.meaning) +
                    "\nwhere it is shown\n    `numsan run --diagnose 1 -- ...`, and `numsan diagnose` of its report\n",
                ""};
        }
        known.insert(known.end(), {row.code, row.slug});
    }
    return {"", nearest(word, known)};
}

}  // namespace numsan
