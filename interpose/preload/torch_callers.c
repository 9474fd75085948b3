/* Which functions of torch a caller is to reach: those that the dynamic loader would have bound it to without us. A
 * process may have several torches, of which we stand in for one: a plugin has its own linked in, or a package brings a
 * copy under another name. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "interpose/preload/preload.h"

#if defined(__x86_64__)

const char* const numsan_torch_call_names[NUMSAN_TORCH_CALLS] = {
    "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE",
    "_ZN2at16getStepCallbacksENS_11RecordScopeE",
    "_ZN5torch8autograd14AccumulateGrad5applyEOSt6vectorIN2at6TensorESaIS4_EE",
};

extern const char __ehdr_start[] HIDDEN, _end[] HIDDEN; /* of this library, from the linker */

/* ---- objects of the process ---- */

/* What is looked for, then what was found. Objects are counted from 0 in the order in which they were loaded. */
struct object {
    uintptr_t address; /* within it, or 0 */
    bool torch;        /* by its file's name */
    long number;       /* or -1 */
    long seen;
    uintptr_t begin, end;
    bool is_torch;
    char* name; /* where PATH_MAX bytes have room for it, or null */
};

static int is_object(struct dl_phdr_info* info, size_t size, void* data) {
    (void)size;
    struct object* object = data;
    const long number = object->seen++;
    if (object->number >= 0 && object->number != number) return 0;
    const char* name = info->dlpi_name ? info->dlpi_name : "";
    const bool is_torch = numsan_is_named(name, "libtorch_cpu.so");
    if (object->torch && !is_torch) return 0;
    uintptr_t begin = UINTPTR_MAX, end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr)* part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD) continue;
        const uintptr_t at = info->dlpi_addr + part->p_vaddr;
        if (at < begin) begin = at;
        if (at + part->p_memsz > end) end = at + part->p_memsz;
    }
    if (object->address && (object->address < begin || object->address >= end)) return 0;
    if (object->name) {
        const size_t length = strlen(name);
        if (length >= PATH_MAX) return 0;
        memcpy(object->name, name, length + 1);
    }
    object->number = number;
    object->begin = begin;
    object->end = end;
    object->is_torch = is_torch;
    return 1;
}

static bool find_object(struct object* object) { return dl_iterate_phdr(is_object, object) != 0; }

static int count_loaded(struct dl_phdr_info* info, size_t size, void* count) {
    (void)size;
    *(long*)count = (long)info->dlpi_adds;
    return 1;
}

static long at_start; /* objects that were loaded with the program: all of them, before any was bound */

__attribute__((constructor)) static void count_at_start(void) { dl_iterate_phdr(count_loaded, &at_start); }

/* ---- what the loader would find ---- */

static void* not_ours(void* found) { return (char*)found >= __ehdr_start && (char*)found < (char*)_end ? NULL : found; }

static int (*real_dlclose(void))(void*) {
    static _Atomic(void*) cache;
    return (int (*)(void*))numsan_next_symbol(&cache, "dlclose");
}

/* In an object and all that it needs. */
static void look_in(const char* name, void* functions[NUMSAN_TORCH_CALLS]) {
    void* handle = numsan_real_dlopen()(name, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return;
    for (int i = 0; i < NUMSAN_TORCH_CALLS; i++)
        if (!functions[i]) functions[i] = not_ours(dlsym(handle, numsan_torch_call_names[i]));
    real_dlclose()(handle);
}

static bool is_complete(void* const functions[NUMSAN_TORCH_CALLS]) {
    for (int i = 0; i < NUMSAN_TORCH_CALLS; i++)
        if (!functions[i]) return false;
    return true;
}

/* What every library sees comes first, unless it was opened only after the caller was bound. */
static void look_up(const struct object* caller, struct numsan_torch_caller* found) {
    void* seen[NUMSAN_TORCH_CALLS];
    for (int i = 0; i < NUMSAN_TORCH_CALLS; i++) {
        seen[i] = not_ours(dlsym(RTLD_NEXT, numsan_torch_call_names[i]));
        struct object object = {.address = (uintptr_t)seen[i], .number = -1};
        const bool first = seen[i] && (!caller || caller->number < at_start || !find_object(&object) ||
                                       object.number <= caller->number);
        found->functions[i] = first ? seen[i] : NULL;
    }
    if (caller && !is_complete(found->functions)) look_in(caller->name, found->functions);
    for (int i = 0; i < NUMSAN_TORCH_CALLS; i++)
        if (!found->functions[i]) found->functions[i] = seen[i];
}

/* The caller does not need a torch itself: what opened it does. */
static void look_anywhere(int which, struct numsan_torch_caller* found) {
    char name[PATH_MAX];
    struct object torch = {.torch = true, .number = -1, .name = name};
    if (find_object(&torch)) look_in(name, found->functions);
    for (long number = 0; !found->functions[which]; number++) {
        struct object object = {.number = number, .name = name};
        if (!find_object(&object)) return;
        look_in(name, found->functions);
    }
}

/* Of the object with this address, or of the first that is named as torch's where that is 0. False: there is none. */
static bool find_caller(uintptr_t address, struct numsan_torch_caller* found) {
    char name[PATH_MAX];
    struct object object = {.address = address, .torch = address == 0, .number = -1, .name = name};
    const bool is = find_object(&object);
    *found = (struct numsan_torch_caller){.begin = object.begin, .end = object.end, .is_torch = object.is_torch};
    look_up(is ? &object : NULL, found);
    for (int i = 0; i < NUMSAN_TORCH_CALLS; i++) {
        const uintptr_t function = (uintptr_t)found->functions[i];
        found->is_torch = found->is_torch && found->begin <= function && function < found->end;
    }
    dlerror();
    return is;
}

bool numsan_find_torch(struct numsan_torch_caller* found) { return find_caller(0, found) && found->is_torch; }

bool numsan_keep_torch(const struct numsan_torch_caller* torch) {
    char name[PATH_MAX];
    struct object object = {.address = torch->begin, .number = -1, .name = name};
    void* handle = find_object(&object) ? numsan_real_dlopen()(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) : NULL;
    return handle && real_dlclose()(handle) == 0;
}

/* ---- what is known of callers ---- */

/* An odd version: is being written; 0: never was. Without a lock: a fork may come at any time. */
static struct known {
    atomic_uint version;
    atomic_ulong unloads;
    _Atomic(uintptr_t) begin, end;
    _Atomic(void*) functions[NUMSAN_TORCH_CALLS];
} all_known[32];
enum { MOST_KNOWN = sizeof all_known / sizeof *all_known };

/* Another library may come to lie where one was. */
static atomic_ulong unloads;

static int take_unloaded(struct dl_phdr_info* info, size_t size, void* count) {
    (void)size;
    *(unsigned long*)count = (unsigned long)info->dlpi_subs;
    return 1;
}

static unsigned long count_unloaded(void) {
    unsigned long count = 0;
    dl_iterate_phdr(take_unloaded, &count);
    return count;
}

/* What is known stays known while destructors run: a look-up would wait for the loader's lock, which they hold. */
EXPORTED int dlclose(void* handle) {
    int (*next)(void*) = real_dlclose();
    if (!next) return -1;
    const unsigned long before = count_unloaded();
    const int error = next(handle);
    if (count_unloaded() != before) atomic_fetch_add(&unloads, 1);
    return error;
}

static void* recall(int which, uintptr_t caller, unsigned long now) {
    for (int i = 0; i < MOST_KNOWN; i++) {
        struct known* known = &all_known[i];
        const unsigned version = atomic_load_explicit(&known->version, memory_order_acquire);
        if (version == 0) return NULL;
        const bool is = atomic_load_explicit(&known->begin, memory_order_relaxed) <= caller &&
                        atomic_load_explicit(&known->end, memory_order_relaxed) > caller &&
                        atomic_load_explicit(&known->unloads, memory_order_relaxed) == now;
        void* function = atomic_load_explicit(&known->functions[which], memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        if (is && version % 2 == 0 && atomic_load_explicit(&known->version, memory_order_relaxed) == version)
            return function;
    }
    return NULL;
}

static void remember(const struct numsan_torch_caller* caller, unsigned long now) {
    static atomic_uint turn;
    int at = 0;
    for (; at < MOST_KNOWN; at++) {
        const unsigned version = atomic_load(&all_known[at].version);
        if (version == 0 || (version % 2 == 0 && atomic_load(&all_known[at].unloads) != now)) break;
    }
    struct known* known = &all_known[at < MOST_KNOWN ? (unsigned)at : atomic_fetch_add(&turn, 1) % MOST_KNOWN];
    unsigned version = atomic_load(&known->version);
    if (version % 2 != 0 || !atomic_compare_exchange_strong(&known->version, &version, version + 1)) return;
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&known->begin, caller->begin, memory_order_relaxed);
    atomic_store_explicit(&known->end, caller->end, memory_order_relaxed);
    atomic_store_explicit(&known->unloads, now, memory_order_relaxed);
    for (int i = 0; i < NUMSAN_TORCH_CALLS; i++)
        atomic_store_explicit(&known->functions[i], caller->functions[i], memory_order_relaxed);
    atomic_store_explicit(&known->version, version + 2, memory_order_release);
}

void* numsan_own_torch_call(int which, uintptr_t caller, struct numsan_torch_caller* found) {
    const unsigned long now = atomic_load(&unloads);
    void* function = recall(which, caller, now);
    found->is_torch = false;
    if (function) return function;
    const bool is = find_caller(caller, found);
    if (!found->functions[which]) look_anywhere(which, found);
    if (is && found->functions[which]) remember(found, now);
    return found->functions[which];
}

#endif
