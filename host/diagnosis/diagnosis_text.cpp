// Training faults as text for people: at the end of a run, and what `numsan diagnose` prints.
#include <cmath>
#include <nlohmann/json.hpp>

#include "host/diagnosis/diagnosis_document.h"
#include "host/diagnosis/rules/words.h"
#include "host/report/finding_words.h"
#include "host/report/json_fields.h"
#include "host/report/json_writer.h"

namespace numsan {
namespace {

std::string percent(double confidence) { return std::to_string(std::lround(100 * confidence)) + " %"; }

}  // namespace

std::string render_diagnosis(const Signals& signals, const std::vector<Fault>& faults, const TextStyle& style) {
    const auto samples = static_cast<int64_t>(signals.steps.size());
    if (faults.empty()) {
        return inked("numsan", Ink::Strong, style) + ": no training fault was recognised in " +
               counted(samples, "sampled step", "sampled steps") + "\n";
    }
    std::string out;
    for (const Fault& fault : faults) {
        const FaultInfo& row = info(fault.id);
        out += inked("fault[" + std::string(row.code) + "]", Ink::Warning, style) + ": " +
               inked(row.name, Ink::Strong, style) + "\n";
        const std::string margin = "  ";
        out += place_lines(fault.location, style);
        for (const std::string& fact : fault.evidence) out += numsan::row(margin, "because:", fact, style);
        out += numsan::row(margin, "fault:", std::string(row.slug) + ", " + percent(fault.confidence), style);
        for (const std::string& change : fault.help) out += numsan::row(margin, "help:", change, style);
    }
    return out + inked("numsan", Ink::Strong, style) + ": " +
           counted(static_cast<int64_t>(faults.size()), "training fault", "training faults") + " in " +
           counted(samples, "sampled step", "sampled steps") + "; `numsan explain " + info(faults[0].id).code +
           "` says more\n";
}

}  // namespace numsan
