// The parts of the phase `twins`, and the disagreements that they find.
#pragma once

#include <string>

#include "tests/gpu/probe/subject.h"

namespace numsan::gpu::probe {

/// Counts all, and keeps the first few.
class Disagreements {
  public:
    explicit Disagreements(Json& data) : data_(data) {
        data_["disagreements"] = 0;
        data_["first_disagreements"] = Json::array();
    }
    /// `text` empty: there was none.
    void add(const std::string& what, const std::string& text) {
        if (text.empty()) return;
        if (first_.empty()) first_ = what + ": " + text;
        data_["disagreements"] = ++count_;
        if (count_ <= 20) data_["first_disagreements"].push_back(what + ": " + text.substr(0, 1000));
    }
    int64_t count() const { return count_; }
    const std::string& first() const { return first_; }

  private:
    Json& data_;
    int64_t count_ = 0;
    std::string first_;
};

/// Launches behind a gate: nothing of a closed one, everything once a bad tensor has opened it, for one step.
void gate(Phase& phase, Disagreements& wrong);
/// Looks at small tensors: of several outputs with operands, and behind a gate.
void looks(Phase& phase, Disagreements& wrong);
/// The engine on eight streams at once.
void eight_streams(Phase& phase, Disagreements& wrong);
/// The engine in a captured graph: only the bad replay tells.
void replays(Phase& phase, Disagreements& wrong);
/// Scans and their looks in a captured graph, which counts its replays.
void looks_in_replays(Phase& phase, Disagreements& wrong);

}  // namespace numsan::gpu::probe
