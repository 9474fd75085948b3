// The JSON that a run leaves, written anew as each phase begins and ends, so that a run that dies names its phase.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/gpu/probe/timing.h"

namespace numsan::gpu::probe {

/// [MT]
class Report {
  public:
    /// `path` empty: nothing is written. `head`: what is known before the first phase.
    Report(std::string path, Json head, const std::vector<std::string>& phases);

    void begin(const std::string& phase);
    /// What the phase under way has found so far.
    void note(const Json& data);
    /// `result` is one word or two; `failure` is null, or {call, result, code} or {what}.
    void end(const std::string& phase, const std::string& result, double seconds, const std::string& line,
             const Json& data, const Json& failure);
    void finish();

    /// False: the file could not be written; it was said on stderr.
    bool written() const { return written_; }

  private:
    void write();

    const std::string path_;
    std::mutex mutex_;
    Json document_;
    bool written_ = true;
};

/// Ends the process when a phase hangs in a call of the driver's, where nothing else ends it.
class Watchdog {
  public:
    explicit Watchdog(Report& report) : report_(report), thread_([this] { watch(); }) {}
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

    /// From now on `phase` has this long; an empty name: nothing is watched.
    void arm(const std::string& phase, double seconds);

  private:
    void watch();

    Report& report_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::string phase_;
    Clock::time_point begin_, end_;
    bool over_ = false;
    std::thread thread_;
};

/// "facts    passed    0.3 s  NVIDIA H200, ..." on stdout.
void print_line(const std::string& phase, const std::string& result, double seconds, const std::string& line);

}  // namespace numsan::gpu::probe
