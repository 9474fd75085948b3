// What makes another document of reports.
#pragma once

#include <string>

#include "host/format/report_files.h"

namespace numsan {

/// Collects what a format needs of each report; `document` is then the whole.
class Converter : public ReportSink {
  public:
    /// Ends with a newline. Called once.
    virtual std::string document() = 0;
};

}  // namespace numsan
