// The session of a CUDA program without a framework: kernels whose names say what they write are its operators.
#pragma once

#include <memory>

#include "host/kernels/kernel_events.h"
#include "host/options/options.h"
#include "host/session/session.h"
#include "host/stacks/native_stacks.h"
#include "interpose/cupti/launch_watch.h"
#include "interpose/libraries/library_calls.h"

namespace numsan {

/// Lives as long as the process. [MT]
class PlainSession final : public DriverListener, public LibraryListener, KernelEvents::Sink {
  public:
    /// `coverage` adds what the process knows of launches. Calls nothing of CUDA's. Throws std::bad_alloc.
    PlainSession(const Options& options, void (*coverage)(RunSummary&));

    Session& session() { return session_; }
    /// What was looked at and what was not, in a user's words. Throws std::bad_alloc.
    void add_coverage(RunSummary& run) const;

    void before_launch(const WatchedLaunch& launch) noexcept override;
    void after_launch(const WatchedLaunch& launch) noexcept override;
    void after_other_launch() noexcept override;
    void memory_call(const cupti::MemoryCall& call, const char* name) noexcept override;
    void after_gap() noexcept override { events_.forget(); }
    void before_call(LibraryCall& call) noexcept override;
    void after_call(LibraryCall& call, bool made) noexcept override;

  private:
    void op_end(const OpEvent& event) noexcept override { session_.op_end(event); }
    void ignore(bool begins) noexcept override;

    NativeStacks stacks_;
    Session session_;
    KernelEvents events_;
};

}  // namespace numsan
