#include "host/report/report_owner.h"

#include "host/report/json_fields.h"
#include "host/report/json_reader.h"

namespace numsan {

std::optional<ReportOwner> owner_of_report(const std::string& path) {
    const ReadResult read = read_report(path);
    if (!read.ok()) return std::nullopt;
    const fields::Json& run = fields::at(read.document, "run");
    return ReportOwner{static_cast<int64_t>(fields::number(run, "pid")), fields::text(run, "process"),
                       !fields::at(read.document, "findings").empty(), fields::at(run, "rank").is_number_integer()};
}

}  // namespace numsan
