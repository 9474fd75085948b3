// Makes the report of a recorded run again: the recording answers for the program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "host/record/record_reader.h"
#include "host/record/segment.h"

namespace numsan {

struct Replayed {
    std::string report;         ///< the JSON text
    std::optional<RunEnd> end;  ///< none: the recording ends before the run did
    std::string why_no_end;
    int64_t calls = 0;    ///< that were played
    int64_t missing = 0;  ///< questions of the session that the recording does not answer
    std::string first_missing;
};

/// Plays a recording into a session of its own, which stays: threads of a run that ended at once are inside it for
/// ever. Reads nothing of the machine and the environment. Throws RecordError. One at a time in a process.
class Replay {
  public:
    /// Reads the facts of the run.
    explicit Replay(RecordReader& reader);

    const RunFacts& facts() const { return facts_; }
    /// Once.
    Replayed play();

  private:
    RecordReader& reader_;
    RunFacts facts_;
};

}  // namespace numsan
