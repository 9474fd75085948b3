// JUnit XML, as Jenkins and GitLab read it: a test case a report.
#include <cmath>
#include <map>

#include "host/format/converters.h"
#include "host/format/known_findings.h"
#include "host/format/parts.h"
#include "host/format/xml.h"
#include "host/log/format.h"
#include "host/report/json_fields.h"
#include "host/report/text.h"

namespace numsan {
namespace {

using fields::at;
using fields::Json;
using fields::list;

enum class State { Passed, Failed, Skipped };

struct TestCase {
    std::string name;
    State state = State::Passed;
    double seconds = 0;
    std::string body;  ///< of the element
};

/// What the run was told to fail on (`fail_on`), else errors.
int failing_severity(const Json& run) {
    return fields::text(at(run, "options"), "fail_on") == "warning" ? severity_rank("warning") : severity_rank("error");
}

std::string attribute(const std::string& name, const std::string& value) {
    return " " + name + "=\"" + xml_text(value) + "\"";
}

class JunitConverter : public PartsConverter<TestCase> {
  public:
    std::string document() override {
        size_t failures = 0;
        size_t skipped = 0;
        double seconds = 0;
        std::string cases;
        std::map<std::string, int> names;
        for (auto& [number, test] : parts()) {
            const int same = ++names[test.name];  // a viewer takes equal names for one test
            const std::string name = test.name + (same > 1 ? " (" + std::to_string(same) + ")" : "");
            cases += "    <testcase" + attribute("classname", "numsan") + attribute("name", name) +
                     attribute("time", fixed(test.seconds, 3)) + ">\n" + test.body + "    </testcase>\n";
            failures += test.state == State::Failed ? 1 : 0;
            skipped += test.state == State::Skipped ? 1 : 0;
            seconds += test.seconds;
        }
        const std::string counts = attribute("tests", std::to_string(parts().size())) +
                                   attribute("failures", std::to_string(failures)) + attribute("errors", "0");
        const std::string time = attribute("time", fixed(seconds, 3));
        return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + attribute("name", "numsan") + counts + time +
               ">\n  <testsuite" + attribute("name", "numsan") + counts +
               attribute("skipped", std::to_string(skipped)) + time + ">\n" + cases + "  </testsuite>\n</testsuites>\n";
    }

  protected:
    TestCase part_of(const SourceReport& report) const override {
        const Json& run = at(report.document, "run");
        TestCase test;
        test.name = program_of(run);
        if (const auto rank = fields::integer(at(run, "rank"))) test.name += ", rank " + digits(*rank);
        const double seconds = fields::real(at(report.document, "cost"), "wall_s").value_or(0);
        test.seconds = std::isfinite(seconds) && seconds > 0 ? seconds : 0;
        TextStyle style;
        style.cwd = fields::text(run, "cwd");
        std::string failing;
        std::string other;
        const Json* first = nullptr;
        size_t count = 0;
        for (const Json& finding : list(report.document, "findings")) {
            const bool fails = severity_rank(fields::text(finding, "severity")) >= failing_severity(run);
            (fails ? failing : other) += render_finding(finding, style) + "\n";
            if (!fails) continue;
            if (first == nullptr) first = &finding;
            ++count;
        }
        other += render_summary(report.document, style, report.path);
        if (first != nullptr) {
            test.state = State::Failed;
            const std::string more =
                count > 1 ? " and " + counted(static_cast<int64_t>(count - 1), "other finding", "other findings") : "";
            test.body = "      <failure" + attribute("message", title(*first, style) + more) +
                        attribute("type", fields::text(*first, "code")) + ">" + xml_text(failing) + "</failure>\n";
        } else if (fields::text(report.document, "verdict") == "incomplete") {
            test.state = State::Skipped;
            test.body = "      <skipped" +
                        attribute("message", "the run is incomplete: silence does not mean health there") + "/>\n";
        }
        test.body += "      <system-out>" + xml_text(other) + "</system-out>\n";
        return test;
    }

  private:
    static std::string title(const Json& finding, const TextStyle& style) {
        const std::string place = shown_place(at(finding, "location"), style.cwd);
        return fields::text(finding, "severity") + "[" + fields::text(finding, "code") +
               "]: " + quote_operators(fields::text(finding, "title")) + (place.empty() ? "" : " at " + place);
    }
};

}  // namespace

std::unique_ptr<Converter> junit_converter() { return std::make_unique<JunitConverter>(); }

}  // namespace numsan
