/* Where the functions of torch that torch_calls.S stands in for go to: to torch's own, or to the adapter's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "interpose/preload/preload.h"

#if defined(__x86_64__)

void* numsan_find_torch_call(int which, unsigned char scope, uintptr_t caller) HIDDEN;

/* Read by torch_calls.S. The torch that we stand in for, which is never unloaded; all 0 until it is known, and the size
 * is written last. */
HIDDEN _Atomic(uintptr_t) numsan_torch_begin, numsan_torch_size;
HIDDEN _Atomic(void*) numsan_torch_own[NUMSAN_TORCH_CALLS];
HIDDEN _Atomic(void*) numsan_torch_in_use[NUMSAN_TORCH_CALLS];

static void stand_in_for(const struct numsan_torch_caller* torch) {
    static atomic_flag chosen = ATOMIC_FLAG_INIT;
    if (!torch->is_torch || atomic_load(&numsan_torch_size)) return;
    if (!numsan_keep_torch(torch) || atomic_flag_test_and_set(&chosen)) return; /* the next caller tries again */
    for (int i = 0; i < NUMSAN_TORCH_CALLS; i++) {
        atomic_store(&numsan_torch_in_use[i], torch->functions[i]);
        atomic_store(&numsan_torch_own[i], torch->functions[i]);
    }
    atomic_store(&numsan_torch_begin, torch->begin);
    atomic_store(&numsan_torch_size, torch->end - torch->begin);
}

/* A library calls what none defines: ends as the dynamic loader would, which found ours instead. */
static _Noreturn void fail(const char* name) {
    dprintf(STDERR_FILENO, "symbol lookup error: undefined symbol: %s\n", name);
    _exit(127);
}

void* numsan_find_torch_call(int which, unsigned char scope, uintptr_t caller) {
    const int saved_errno = errno;
    struct numsan_torch_caller object;
    void* found = numsan_own_torch_call(which, caller, &object);
    stand_in_for(&object);
    errno = saved_errno;
    if (!found) fail(numsan_torch_call_names[which]);
    if (found != atomic_load(&numsan_torch_own[which])) return found;
    return which == 0 && scope == 0 ? found : atomic_load(&numsan_torch_in_use[which]);
}

int numsan_replace_torch_calls(const struct numsan_torch_calls* ours, struct numsan_torch_calls* theirs) {
    void* const wanted[NUMSAN_TORCH_CALLS] = {ours->node_callbacks, ours->scope_callbacks, ours->accumulate};
    struct numsan_torch_caller object;
    if (!atomic_load(&numsan_torch_size) && numsan_find_torch(&object)) stand_in_for(&object);
    if (!atomic_load(&numsan_torch_size)) return 0;
    void* own[NUMSAN_TORCH_CALLS];
    for (int i = 0; i < NUMSAN_TORCH_CALLS; i++) {
        own[i] = atomic_load(&numsan_torch_own[i]);
        if (wanted[i] && numsan_own_torch_call(i, (uintptr_t)wanted[i], &object) != own[i]) return 0;
    }
    *theirs = (struct numsan_torch_calls){own[0], own[1], own[2], dlsym(RTLD_DEFAULT, numsan_torch_call_names[2])};
    for (int i = 0; i < NUMSAN_TORCH_CALLS; i++) atomic_store(&numsan_torch_in_use[i], wanted[i] ? wanted[i] : own[i]);
    return 1;
}

#else
int numsan_replace_torch_calls(const struct numsan_torch_calls* ours, struct numsan_torch_calls* theirs) {
    (void)ours;
    (void)theirs;
    return 0;
}
#endif
