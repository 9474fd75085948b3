// How threads take turns while a recording is made: within host/record only.
#pragma once

#include <cstdint>

#include "host/record/recorder.h"

namespace numsan {

/// The process's recorder: the functions of the C boundary have nothing else to find it by.
extern Recorder* the_recorder;

/// What the recorder keeps of a thread. Trivially destructible: calls may come while the thread ends.
struct Recorder::Thread {
    const Recorder* numbered_by;
    uint32_t number;  ///< 0: not seen yet
    bool ended;
    bool inside;    ///< the session, by its turn: it has the lock
    StackId stack;  ///< of the call it is inside of, asked for before the turn: that may wait for other threads
    uint32_t (*autograd_facts)(const void* impl, bool may_wait);
};

/// A call into the session. Not taken: the call goes on unrecorded.
class Recorder::Turn {
  public:
    Turn(Recorder& recorder, Head head) noexcept;
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const { return taken_; }
    void has(StackId stack) { thread_.stack = stack; }
    void has(uint32_t (*autograd_facts)(const void*, bool)) { thread_.autograd_facts = autograd_facts; }

  private:
    Recorder& recorder_;
    Thread& thread_;
    const Thread before_;  ///< this may be inside a call that the session made
    bool taken_ = false;
};

/// A call that the session makes, of what may wait for other threads or run the program's code: others have their turn.
/// take() says what it returned, once it is over.
class Recorder::Outside {
  public:
    Outside(Recorder& recorder, Head head) noexcept;
    ~Outside();
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;

    void over() noexcept;

  private:
    Recorder& recorder_;
    Thread& thread_;
    const Head head_;
    const StackId stack_;
    uint32_t (*const autograd_facts_)(const void* impl, bool may_wait);
    bool away_ = false;
};

/// Adds to the segment that is being recorded. What fails ends the recording, never the program.
template <class Take>
void Recorder::take(Take&& what) noexcept {
    if (!on() || !this_thread().inside) return;
    try {
        what(segment_);
    } catch (...) {
        stop("out of memory");
    }
}

}  // namespace numsan
