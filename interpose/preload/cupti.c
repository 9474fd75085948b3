/* CUPTI has room for one subscriber. A library that asks for it by these functions gets it: the core's subscription is
 * released first, and taken again when theirs has ended or was refused. After a cuptiFinalize, and where a library
 * opens CUPTI by itself and may look up its functions past us, the core does without for good.
 *
 * The functions themselves are those that the caller would have found without us. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "interpose/preload/preload.h"

/* cupti_result.h */
enum { kSuccess = 0, kUnknown = 999 };

typedef int (*subscribe_fn)(void**, void*, void*);
typedef int (*subscribe_v2_fn)(void**, void*, void*, void*);
typedef int (*unsubscribe_fn)(void*);
typedef int (*finalize_fn)(void);

EXPORTED int cuptiSubscribe(void** subscriber, void* callback, void* data);
EXPORTED int cuptiSubscribe_v2(void** subscriber, void* callback, void* data, void* parameters);
EXPORTED int cuptiUnsubscribe(void* subscriber);
EXPORTED int cuptiFinalize(void);

static _Atomic(void (*)(int)) yield_core;
static _Atomic(void (*)(void)) again_core;

void numsan_set_cupti_yield(void (*yield)(int for_good), void (*again)(void)) {
    atomic_store(&again_core, again);
    atomic_store(&yield_core, yield);
}

static void yield(int for_good) {
    void (*release)(int) = atomic_load(&yield_core);
    if (release) release(for_good);
}

static void take_again(void) {
    void (*again)(void) = atomic_load(&again_core);
    if (again) again();
}

void numsan_cupti_opened(const char* file) {
    if (!atomic_load_explicit(&yield_core, memory_order_relaxed)) return;
    const char* slash = strrchr(file, '/');
    if (strncmp(slash ? slash + 1 : file, "libcupti.so", 11) == 0) yield(1);
}

/* `name` in the libraries of `caller`, which need not be visible elsewhere; for the program itself, and where its
 * own libraries have none, in what is visible to all. Null: the process has no CUPTI that the caller could mean. */
static void* theirs(const char* name, const void* caller, const void* ours) {
    Dl_info info;
    struct link_map* map = NULL;
    void* found = NULL;
    if (dladdr1(caller, &info, (void**)&map, RTLD_DL_LINKMAP) && map && map->l_prev) {
        void* library = numsan_real_dlopen()(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            found = dlsym(library, name);
            dlclose(library); /* the caller is in it: it stays */
        }
    }
    if (!found || found == ours) found = dlsym(RTLD_NEXT, name);
    return found;
}

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a type has none */
#define THEIRS(type, function) ((type)theirs(#function, __builtin_return_address(0), (const void*)function))

int cuptiSubscribe(void** subscriber, void* callback, void* data) {
    subscribe_fn next = THEIRS(subscribe_fn, cuptiSubscribe);
    if (!next) return kUnknown;
    yield(0);
    const int result = next(subscriber, callback, data);
    if (result != kSuccess) take_again();
    return result;
}

int cuptiSubscribe_v2(void** subscriber, void* callback, void* data, void* parameters) {
    subscribe_v2_fn next = THEIRS(subscribe_v2_fn, cuptiSubscribe_v2);
    if (!next) return kUnknown;
    yield(0);
    const int result = next(subscriber, callback, data, parameters);
    if (result != kSuccess) take_again();
    return result;
}

int cuptiUnsubscribe(void* subscriber) {
    unsubscribe_fn next = THEIRS(unsubscribe_fn, cuptiUnsubscribe);
    if (!next) return kUnknown;
    const int result = next(subscriber);
    if (result == kSuccess) take_again();
    return result;
}

int cuptiFinalize(void) {
    finalize_fn next = THEIRS(finalize_fn, cuptiFinalize);
    if (!next) return kUnknown;
    yield(1);
    return next();
}
