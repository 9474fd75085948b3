// Signals that a write of ours may raise: a closed pipe, a limit of the size of files. The program does not see them.
#pragma once

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace numsan {

/// Holds back SIGXFSZ and SIGPIPE of this thread; the ones our writes caused are taken off the queue again.
class HeldSignals {
  public:
    HeldSignals() {
        sigemptyset(&ours_);
        sigaddset(&ours_, SIGXFSZ);
        sigaddset(&ours_, SIGPIPE);
        sigpending(&before_);
        pthread_sigmask(SIG_BLOCK, &ours_, &mask_);
    }
    ~HeldSignals() {
        sigset_t take;
        sigset_t now;
        sigemptyset(&take);
        sigpending(&now);
        bool any = false;
        for (const int number : {SIGXFSZ, SIGPIPE}) {
            if (sigismember(&now, number) && !sigismember(&before_, number)) {
                sigaddset(&take, number);
                any = true;
            }
        }
        const timespec at_once{};
        while (any && sigtimedwait(&take, nullptr, &at_once) > 0) {
        }
        pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    }
    HeldSignals(const HeldSignals&) = delete;
    HeldSignals& operator=(const HeldSignals&) = delete;

  private:
    sigset_t ours_;
    sigset_t before_;
    sigset_t mask_;
};

}  // namespace numsan
