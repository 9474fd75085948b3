#include "interpose/runtime/finding_mark.h"

#include <cstdlib>
#include <string>

#include "host/cause/title.h"
#include "host/finding/mechanisms.h"
#include "interpose/nvtx/tool_marks.h"

namespace numsan {

void mark_finding(const Finding& finding) {
    const MechanismInfo* mechanism = info(finding.mechanism);
    if (mechanism == nullptr) return;
    std::string text = std::string(to_string(finding.severity)) + "[" + mechanism->code + "]: " + title_of(finding);
    if (finding.location) {
        text += ", at " + finding.location->file + ":" + std::to_string(finding.location->line);
        if (!finding.location->function.empty()) text += " in " + finding.location->function;
    }
    text += ", step " + std::to_string(finding.step) + ", op " + std::to_string(static_cast<int64_t>(finding.seq)) +
            " (" + finding.op + ")";
    const char* number = mechanism->code;
    while (*number != '\0' && (*number < '0' || *number > '9')) ++number;
    mark_in_tool(
        {static_cast<uint32_t>(std::atoi(number)), mechanism->code, static_cast<uint64_t>(finding.step), text.c_str()});
}

}  // namespace numsan
