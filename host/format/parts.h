// A converter whose document consists of a part for each report.
#pragma once

#include <map>
#include <utility>

#include "host/format/converter.h"

namespace numsan {

template <typename Part>
class PartsConverter : public Converter {
  public:
    void add(const SourceReport& report) override { parts_.emplace(report.number, part_of(report)); }

    void absorb(ReportSink& other) override { parts_.merge(dynamic_cast<PartsConverter&>(other).parts_); }

  protected:
    virtual Part part_of(const SourceReport& report) const = 0;

    /// By the number of the report.
    std::map<size_t, Part>& parts() { return parts_; }

  private:
    std::map<size_t, Part> parts_;
};

}  // namespace numsan
