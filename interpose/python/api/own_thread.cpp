// A thread made for one piece of work in the interpreter.
#include "interpose/python/api/own_thread.h"

#include <dlfcn.h>
#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "interpose/python/api/gate.h"

namespace numsan {
namespace {

using std::chrono::seconds;

constexpr seconds kToBegin{1};
constexpr seconds kToEnd{5};

class Job {
  public:
    Job(const PythonApi& api, std::function<void()> work) : api_(api), work_(std::move(work)) {}

    void run() {
        {
            const PythonLock lock(api_);
            if (begin()) work_();
        }
        end();
    }

    /// False: the work has not ended in time, or has not begun in time and never will.
    bool wait() {
        std::unique_lock lock(mutex_);
        const auto is_done = [&] { return state_ == State::Done; };
        changed_.wait_for(lock, kToBegin, [&] { return state_ != State::Waiting; });
        if (state_ == State::Waiting) state_ = State::Abandoned;
        return state_ != State::Abandoned && changed_.wait_for(lock, kToEnd, is_done);
    }

  private:
    enum class State { Waiting, Running, Done, Abandoned };

    bool begin() {
        const std::lock_guard lock(mutex_);
        if (state_ == State::Abandoned) return false;
        state_ = State::Running;
        changed_.notify_all();
        return true;
    }
    void end() {
        const std::lock_guard lock(mutex_);
        if (state_ != State::Abandoned) state_ = State::Done;
        changed_.notify_all();
    }

    const PythonApi& api_;
    const std::function<void()> work_;
    std::mutex mutex_;
    std::condition_variable changed_;
    State state_ = State::Waiting;
};

void* run(void* argument) {
    const std::unique_ptr<std::shared_ptr<Job>> job(static_cast<std::shared_ptr<Job>*>(argument));
    try {
        (*job)->run();
    } catch (const std::exception&) {  // out of memory: the caller sees that there is no answer
    }
    python_access().remove_helper();
    return nullptr;
}

/// libc's own: a thread that numsan's pthread_create makes would show its operators.
using CreateThread = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
CreateThread plain_pthread_create() {
    auto create = reinterpret_cast<CreateThread>(dlsym(RTLD_NEXT, "pthread_create"));
    return create != nullptr ? create : pthread_create;
}

}  // namespace

bool on_own_python_thread(const PythonApi& api, std::function<void()> work) {
    const auto job = std::make_shared<Job>(api, std::move(work));
    auto handed_over = std::make_unique<std::shared_ptr<Job>>(job);
    pthread_t thread;
    python_access().add_helper();  // the interpreter does not end while that thread waits for its lock
    if (plain_pthread_create()(&thread, nullptr, run, handed_over.get()) != 0) {
        python_access().remove_helper();
        return false;
    }
    static_cast<void>(handed_over.release());
    pthread_detach(thread);
    void* const state = holds_python_lock(api) ? api.PyEval_SaveThread() : nullptr;
    const bool done = job->wait();
    if (state != nullptr) api.PyEval_RestoreThread(state);
    return done;
}

}  // namespace numsan
