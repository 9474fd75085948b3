/* Where the functions of torch that torch_calls.S stands in for go to: to torch's own, or to the adapter's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "interpose/preload/preload.h"

#if defined(__x86_64__)

enum { CALLS = 3 };
static const char* const names[CALLS] = {
    "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE",
    "_ZN2at16getStepCallbacksENS_11RecordScopeE",
    "_ZN5torch8autograd14AccumulateGrad5applyEOSt6vectorIN2at6TensorESaIS4_EE",
};

extern char numsan_first_node_callbacks[] HIDDEN, numsan_first_scope_callbacks[] HIDDEN,
    numsan_first_accumulate[] HIDDEN;
void* numsan_find_torch_call(int which) HIDDEN;

/* Read by torch_calls.S. */
HIDDEN _Atomic(void*) numsan_torch_own[CALLS] = {numsan_first_node_callbacks, numsan_first_scope_callbacks,
                                                 numsan_first_accumulate};
HIDDEN _Atomic(void*) numsan_torch_in_use[CALLS] = {numsan_first_node_callbacks, numsan_first_scope_callbacks,
                                                    numsan_first_accumulate};
static void* const first[CALLS] = {numsan_first_node_callbacks, numsan_first_scope_callbacks, numsan_first_accumulate};

static int find_torch(struct dl_phdr_info* info, size_t size, void* path) {
    (void)size;
    const char* name = info->dlpi_name ? info->dlpi_name : "";
    const char* slash = strrchr(name, '/');
    if (strncmp(slash ? slash + 1 : name, "libtorch_cpu.so", 15) != 0) return 0;
    *(const char**)path = name;
    return 1;
}

/* In torch's library, however it was opened: its symbols may be visible to its own callers only. */
static void* look_up(int which) {
    const char* path = NULL;
    dl_iterate_phdr(find_torch, &path);
    void* torch = path ? numsan_real_dlopen()(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void* found = torch ? dlsym(torch, names[which]) : NULL;
    if (torch) dlclose(torch);
    return found ? found : dlsym(RTLD_NEXT, names[which]);
}

static void* own_call(int which) {
    void* found = atomic_load(&numsan_torch_own[which]);
    if (found != first[which]) return found;
    const int saved_errno = errno;
    found = look_up(which);
    dlerror();
    errno = saved_errno;
    if (!found) return NULL;
    atomic_store(&numsan_torch_own[which], found);
    void* expected = first[which];
    atomic_compare_exchange_strong(&numsan_torch_in_use[which], &expected, found);
    return found;
}

/* A library calls what none defines: ends as the dynamic loader would, which found ours instead. */
static _Noreturn void fail(const char* name) {
    dprintf(STDERR_FILENO, "symbol lookup error: undefined symbol: %s\n", name);
    _exit(127);
}

void* numsan_find_torch_call(int which) {
    void* found = own_call(which);
    if (!found) fail(names[which]);
    return found;
}

int numsan_replace_torch_calls(const struct numsan_torch_calls* ours, struct numsan_torch_calls* theirs) {
    void* const wanted[CALLS] = {ours->node_callbacks, ours->scope_callbacks, ours->accumulate};
    void* own[CALLS];
    for (int i = 0; i < CALLS; i++) {
        own[i] = own_call(i);
        if (!own[i]) return 0;
    }
    *theirs = (struct numsan_torch_calls){own[0], own[1], own[2], dlsym(RTLD_DEFAULT, names[2])};
    for (int i = 0; i < CALLS; i++) atomic_store(&numsan_torch_in_use[i], wanted[i] ? wanted[i] : own[i]);
    return 1;
}

#else
int numsan_replace_torch_calls(const struct numsan_torch_calls* ours, struct numsan_torch_calls* theirs) {
    (void)ours;
    (void)theirs;
    return 0;
}
#endif
