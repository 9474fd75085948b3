// A thread made for one piece of work in the interpreter.
#include "interpose/python/api/own_thread.h"

#include <dlfcn.h>
#include <pthread.h>

#include <exception>

namespace numsan {
namespace {

struct Work {
    const PythonApi& api;
    void (*work)(void*);
    void* argument;
};

void* run(void* argument) {
    const Work& wanted = *static_cast<Work*>(argument);
    try {
        const PythonLock lock(wanted.api);
        wanted.work(wanted.argument);
    } catch (const std::exception&) {  // out of memory: the caller sees that there is no answer
    }
    return nullptr;
}

/// libc's own: a thread that numsan's pthread_create makes would show its operators.
using CreateThread = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
CreateThread plain_pthread_create() {
    auto create = reinterpret_cast<CreateThread>(dlsym(RTLD_NEXT, "pthread_create"));
    return create != nullptr ? create : pthread_create;
}

}  // namespace

bool on_own_python_thread(const PythonApi& api, void (*work)(void*), void* argument) {
    Work wanted{api, work, argument};
    pthread_t thread;
    const PythonLock lock(api);  // this thread may have it, and must not while it waits
    if (plain_pthread_create()(&thread, nullptr, run, &wanted) != 0) return false;
    void* const state = api.PyEval_SaveThread();
    pthread_join(thread, nullptr);
    api.PyEval_RestoreThread(state);
    return true;
}

}  // namespace numsan
