// Makes the report of a recorded run again: the recording answers for the program.
#pragma once

#include "host/record/record_reader.h"
#include "host/record/replayed.h"

namespace numsan {

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
