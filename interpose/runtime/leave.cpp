#include "interpose/runtime/leave.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "interpose/python/api/api.h"
#include "interpose/python/at_exit.h"
#include "interpose/runtime/process_options.h"

namespace numsan {
namespace {

constexpr unsigned kGraceSeconds = 10;

void* end_later(void* status) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is safe
    for (unsigned left = kGraceSeconds; left > 0;) left = sleep(left);
    say(("halt=1: the program has not ended after " + std::to_string(kGraceSeconds) + " s and is ended now").c_str());
    std::fflush(nullptr);
    _exit(static_cast<int>(reinterpret_cast<intptr_t>(status)));
}

/// On libc's own pthread_create: a thread that numsan's makes would show its operators.
bool end_in_some_seconds(int status) {
    using CreateThread = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    const auto create = reinterpret_cast<CreateThread>(dlsym(RTLD_NEXT, "pthread_create"));
    pthread_t thread;
    return create != nullptr && create(&thread, nullptr, end_later, reinterpret_cast<void*>(intptr_t(status))) == 0 &&
           pthread_detach(thread) == 0;
}

}  // namespace

void leave_program(int status) {
    const bool bounded = end_in_some_seconds(status);
    const PythonApi* python = python_api();
    if (bounded && python != nullptr && python_usable(*python) && exit_python(*python, status)) return;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): as the program itself would; its other threads have some seconds
    if (bounded && gettid() == getpid()) std::exit(status);
    std::fflush(nullptr);
    _exit(status);
}

}  // namespace numsan
