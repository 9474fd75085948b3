/* CUDA's own way in: the driver loads the library that CUDA_INJECTION64_PATH names inside cuInit and calls its
 * InitializeInjection. Set to this library where it is not set, so that CUDA programs without torch are noticed.
 *
 * Children inherit the variable. One that does not preload us is loaded by its driver all the same: there
 * InitializeInjection does nothing.
 * Another tool's library stays: the driver loads it by dlopen, which we see, and that is as good as a call. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpose/preload/preload.h"

static const char kVariable[] = "CUDA_INJECTION64_PATH";

static atomic_bool wanted;       /* this process is preloaded, and to be watched */
static atomic_bool cuda_started; /* cuInit runs, or has run */
static _Atomic(const char*) other;

/* Another copy of this library: it may be in this process or not, but it is no stranger. */
static bool is_a_copy(const char* path) {
    const char* slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, "libnumsan.so") == 0;
}

/* setenv at a program's start, without being the first to call malloc: that would be most of what we cost. glibc copies
 * an environment that is not its own when it next changes it. */
static void set_variable(const char* own) {
    enum { kRoom = 510 };
    static char* environment[kRoom + 2];
    static char assignment[sizeof kVariable + PATH_MAX];
    const size_t length = strlen(own) + 1;
    size_t count = 0;
    while (environ && environ[count] && count < kRoom) count++;
    if (!environ || environ[count] || length > PATH_MAX || getenv(kVariable)) {
        setenv(kVariable, own, 1); /* NOLINT(concurrency-mt-unsafe): before the program has threads */
        return;
    }
    memcpy(assignment, kVariable, sizeof kVariable - 1);
    assignment[sizeof kVariable - 1] = '=';
    memcpy(assignment + sizeof kVariable, own, length);
    memcpy(environment, environ, count * sizeof *environ);
    environment[count] = assignment;
    environ = environment;
}

void numsan_announce_injection(const char* own) {
    const char* set = getenv(kVariable);
    if (!set || !*set)
        set_variable(own);
    else if (strcmp(set, own) != 0)
        atomic_store(&other, strdup(set));
    atomic_store(&wanted, true);
}

const char* numsan_other_injection(void) {
    const char* path = atomic_load_explicit(&other, memory_order_relaxed);
    return path && !is_a_copy(path) ? path : NULL;
}

static void notify_core(void) {
    static char folder[PATH_MAX];
    static struct numsan_stub_api api;
    static atomic_bool notified;
    if (!atomic_exchange(&notified, true)) numsan_call_core(NUMSAN_CORE_CUDA_SYMBOL, &api, folder);
}

/* Inside cuInit, on whatever thread: the core makes no call of CUDA's nor of Python's here. */
static void on_cuda_start(void) {
    if (!atomic_load(&wanted) || atomic_exchange(&cuda_started, true)) return;
    if (!numsan_torch_is_due()) notify_core();
}

void numsan_injection_after_torch(void) {
    if (atomic_load(&cuda_started)) notify_core();
}

/* Called by the driver. 1 is success, as in CUPTI's samples. */
EXPORTED int InitializeInjection(void) {
    on_cuda_start();
    return 1;
}

static void* injecting_dlopen(const char* file, int mode) {
    void* library = numsan_real_dlopen()(file, mode);
    on_cuda_start();
    return library;
}

/* Only for a path by which every caller finds the same file. */
numsan_dlopen_fn numsan_injection_dlopen(const char* file) {
    const char* theirs = atomic_load_explicit(&other, memory_order_relaxed);
    if (!theirs || strcmp(file, theirs) != 0 || !strchr(file, '/') || strchr(file, '$')) return NULL;
    return atomic_load_explicit(&cuda_started, memory_order_relaxed) ? NULL : injecting_dlopen;
}
