// The options of this process, and the lines that are said before there is a report.
#pragma once

#include "host/options/options.h"

namespace numsan {

/// NUMSAN_OPTIONS as they were when first asked for; what is wrong with them is said then. [MT]
const Options& process_options();

/// One line "numsan: LINE" on stderr. [MT]
void say(const char* line);

}  // namespace numsan
