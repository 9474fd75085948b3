// Which threads may still ask Python: once the interpreter is ending, only the thread that ends it.
#pragma once

#include <pthread.h>

#include <atomic>

#include "interpose/python/api/api.h"

namespace numsan {

/// A thread that waits for the interpreter's lock while the interpreter ends is killed where it stands (pthread_exit),
/// with frames of the host program below ours; and memory of a thread's frames is freed under it. Neither may happen on
/// our account. [MT]
class PythonAccess {
  public:
    /// False: the interpreter is ending. True: leave() must follow, and until then the interpreter does not end.
    bool enter() noexcept {
        inside_.fetch_add(1);
        ++t_inside;
        if (open()) return true;
        leave();
        return false;
    }
    void leave() noexcept {
        --t_inside;
        inside_.fetch_sub(1);
    }

    /// A thread of ours works for one that is inside, and may be there longer.
    void add_helper() noexcept { inside_.fetch_add(1); }
    void remove_helper() noexcept { inside_.fetch_sub(1); }

    /// close() was called: the calling thread may be the one that ends the interpreter.
    bool closed() const noexcept { return closed_.load(); }

    /// False on every thread but the closing one once close() was called.
    bool open() const noexcept { return !closed_.load() || pthread_equal(closer_, pthread_self()) != 0; }

    /// The interpreter is about to end; the calling thread holds its lock. Waits without the lock until the others are
    /// out, at most some seconds: one of them may be stuck in code of the program's.
    void close(const PythonApi& api) noexcept;

    /// In a forked child: the thread that forked is its only one, and may be inside.
    void reset() noexcept { inside_.store(t_inside); }

    /// How often threads are inside, for tests.
    int inside() const noexcept { return inside_.load(); }

  private:
    static inline thread_local int t_inside = 0;
    std::atomic<int> inside_{0};
    std::atomic<bool> closed_{false};
    pthread_t closer_{};
};

PythonAccess& python_access();

/// Inside the gate for the length of a scope, if it is open.
class InsidePython {
  public:
    InsidePython() : allowed_(python_access().enter()) {}
    ~InsidePython() {
        if (allowed_) python_access().leave();
    }
    InsidePython(const InsidePython&) = delete;
    InsidePython& operator=(const InsidePython&) = delete;
    explicit operator bool() const noexcept { return allowed_; }

  private:
    bool allowed_;
};

}  // namespace numsan
