#include "interpose/python/api/gate.h"

#include <ctime>

namespace numsan {

PythonAccess& python_access() {
    static PythonAccess& gate = *new PythonAccess;  // other threads ask it until the process ends
    return gate;
}

void PythonAccess::close(const PythonApi& api) noexcept {
    closer_ = pthread_self();
    closed_.store(true);
    if (inside_.load() == 0) return;
    constexpr int kPolls = 5000;
    constexpr timespec kPause{0, 1'000'000};
    void* const state = api.PyEval_SaveThread();
    for (int i = 0; i < kPolls && inside_.load() > 0; ++i) nanosleep(&kPause, nullptr);
    api.PyEval_RestoreThread(state);
}

}  // namespace numsan
