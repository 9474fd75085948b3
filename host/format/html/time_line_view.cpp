#include "host/format/html/time_line_view.h"

#include <algorithm>
#include <cmath>

#include "host/format/html/finding_view.h"
#include "host/format/html/number_line.h"
#include "host/report/text_layout.h"

namespace numsan::html {
namespace {

using fields::JsonInteger;
using fields::text;

constexpr size_t kMostMarks = 100;  ///< of the page: those with a place of their own on it
constexpr double kMarkWidth = 9;    ///< percent of the line that a mark has at 400 pixels
constexpr size_t kMostLevels = 6;   ///< marks that stand below each other; further ones cover them

class TimeLine {
  public:
    explicit TimeLine(JsonInteger last) : last_(std::max<JsonInteger>(last, 1)) {}

    double place(JsonInteger step) const {
        const double share = 100 * static_cast<double>(step) / static_cast<double>(last_);
        return std::clamp(share, 0.0, 100.0);
    }

    /// Round steps, at most six.
    List ticks() const {
        const double rough = static_cast<double>(last_) / 5;
        double unit = std::pow(10, std::floor(std::log10(rough)));
        for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
            if (factor * unit >= rough) {
                unit = std::max(1.0, std::floor(factor * unit));
                break;
            }
        }
        List out;
        for (JsonInteger step = 0; step <= last_; step += static_cast<JsonInteger>(unit)) {
            Data tick;
            put(tick, "at", percent(place(step)));
            put(tick, "step", grouped(step));
            tick.set("last", place(step) > 92);
            out.push_back(tick);
        }
        return out;
    }

  private:
    JsonInteger last_;
};

/// The marks of one lane, where they would cover each other below each other.
class Lane {
  public:
    explicit Lane(const TimeLine& line) : line_(line) {}

    void add(const KnownFinding& known, size_t number) {
        const double place = line_.place(known.first_step);
        size_t level = 0;
        while (level < ends_.size() && ends_[level] > place && level + 1 < kMostLevels) ++level;
        if (level >= ends_.size()) ends_.resize(level + 1);
        ends_[level] = place + kMarkWidth;
        Data mark;
        put(mark, "at", percent(place));
        put(mark, "level", std::to_string(level));
        put(mark, "anchor", "finding-" + std::to_string(number));
        put(mark, "number", std::to_string(number));
        put(mark, "class", severity_class(known.severity));
        put(mark, "mark", severity_mark(known.severity));
        put(mark, "severity", known.severity);
        put(mark, "code", text(known.document, "code"));
        put(mark, "step", grouped(known.first_step));
        put(mark, "title", title_of_any_run(known.document));
        marks_.push_back(mark);
    }

    bool empty() const { return marks_.empty(); }

    Data view(const std::string& name) const {
        Data made;
        put(made, "name", name);
        put(made, "levels", std::to_string(std::max<size_t>(ends_.size(), 1)));
        made.set("marks", marks_);
        return made;
    }

  private:
    const TimeLine& line_;
    std::vector<double> ends_;  ///< of the last mark of each level
    List marks_;
};

/// From the first step in which something lasting was not finite.
List spans_of(const std::vector<const KnownFinding*>& findings, const TimeLine& line) {
    List out;
    for (const auto& [kind, name] : {std::pair("parameter", "parameters"),
                                     std::pair("optimizer_state", "optimizer state"), std::pair("buffer", "buffers")}) {
        std::optional<JsonInteger> since;
        for (const KnownFinding* known : findings) {
            const auto own = bad_since(known->document, kind);
            if (own) since = std::min(since.value_or(*own), *own);
        }
        if (!since) continue;
        Data span;
        put(span, "name", name);
        put(span, "from", percent(line.place(*since)));
        put(span, "since", grouped(*since));
        out.push_back(span);
    }
    return out;
}

}  // namespace

Data time_line_view(const std::vector<const KnownFinding*>& findings, const SkippedSteps& skipped, JsonInteger steps) {
    if (findings.empty() && skipped.empty()) return Data(false);
    JsonInteger last = steps;
    for (const KnownFinding* known : findings) last = std::max(last, known->first_step);
    const TimeLine line(last);
    List lanes;
    for (const char* phase : {"load", "data", "forward", "backward", "comm", "optimizer"}) {
        Lane lane(line);
        for (size_t i = 0; i < std::min(findings.size(), kMostMarks); ++i) {
            if (text(findings[i]->document, "phase") == phase) lane.add(*findings[i], i + 1);
        }
        if (!lane.empty()) lanes.push_back(lane.view(phase));
    }
    List skips;
    for (const JsonInteger step : skipped) {
        if (skips.size() == kMostMarks) break;
        Data skip;
        put(skip, "at", percent(line.place(step)));
        put(skip, "step", grouped(step));
        skips.push_back(skip);
    }
    Data view;
    put(view, "steps", counted(steps, "step", "steps"));
    view.set("ticks", line.ticks());
    view.set("lanes", lanes);
    view.set("spans", spans_of(findings, line));
    view.set("skips", skips);
    put(view, "skip_count", skipped.empty() ? "" : std::to_string(skipped.size()));
    return view;
}

}  // namespace numsan::html
