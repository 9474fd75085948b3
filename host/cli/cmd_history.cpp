// numsan history: findings over many nights.
#include "host/changes/finding_history.h"
#include "host/changes/history_document.h"
#include "host/cli/commands.h"

namespace numsan::cli {

int history(const std::string& folder, const std::string& format, const std::string& output, const std::string& color) {
    const auto known = format_of("history", format);
    if (!known) {
        complain(unknown_format("history", format));
        return kUsage;
    }
    const Nights read = read_nights(folder);
    if (complain_of(read.read)) return kUsage;
    return write_output(output, history_document(*known, folder, read.nights, finding_histories(read.nights),
                                                 output_style(output, color)));
}

}  // namespace numsan::cli
