// A converter whose document is made of the findings of all reports together.
#pragma once

#include "host/format/converter.h"
#include "host/format/known_findings.h"

namespace numsan {

class KnownConverter : public Converter {
  public:
    void add(const SourceReport& report) override { known_.add(report); }

    void absorb(ReportSink& other) override { known_.absorb(dynamic_cast<KnownConverter&>(other).known_); }

  protected:
    const KnownFindings& known() const { return known_; }

  private:
    KnownFindings known_;
};

}  // namespace numsan
