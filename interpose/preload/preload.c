/* libnumsan.so, the library that is preloaded. C and libc only. It waits for torch: when libtorch_cpu.so has been
 * mapped (by a dlopen, or with the program itself) it loads libnumsan_core.so once (core_loader.c). So it does when
 * CUDA is initialised (injection.c). Everything else it passes through untouched.
 *
 * Interposed: dlopen (dlopen_hook.S), dlclose (torch_callers.c), __libc_start_main, pthread_create, four functions of
 * CUPTI (cupti.c) and three of torch (torch_calls.S).
 * Exported besides: InitializeInjection and, for NVTX (nvtx.c), InitializeInjectionNvtx2. Nothing else.
 * Errors: one line `numsan: off: <reason>` on stderr, and the program runs on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "interpose/preload/preload.h"

typedef int (*pthread_create_fn)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
typedef int (*main_fn)(int, char**, char**);
typedef int (*libc_start_main_fn)(main_fn, int, char**, void (*)(void), void (*)(void), void (*)(void), void*);

void* numsan_dlopen_target(const char* file, int mode, const void* caller) HIDDEN;
EXPORTED int __libc_start_main(main_fn program_main, int argc, char** argv, void (*init)(void), void (*fini)(void),
                               void (*rtld_fini)(void), void* stack_end);

/* Watching begins when the libraries linked to the program have been initialised, and ends when the core has been asked
 * to attach to torch. */
static atomic_bool watching;
static _Atomic(void (*)(void)) thread_start;
static main_fn real_main;

/* Depth of watched dlopens on this thread: inside one, torch may be mapped but not initialised. */
static __thread int dlopen_depth __attribute__((tls_model("initial-exec")));

/* ---- whether this process matters ---- */

static bool is_build_tool(const char* name) {
    static const char* const names[] = {"nvcc", "ptxas", "cicc",  "cudafe++", "fatbinary", "nvlink", "gcc", "g++",
                                        "cc",   "c++",   "cc1",   "cc1plus",  "collect2",  "clang",  "ld",  "as",
                                        "make", "ninja", "cmake", "bash",     "dash",      "sh",     "git"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* Whether the last `key` (with its =) in NUMSAN_OPTIONS has this value. */
static bool option_is(const char* key, const char* value) {
    bool is = false;
    const size_t key_length = strlen(key), length = strlen(value);
    for (const char* at = getenv("NUMSAN_OPTIONS"); at; at = strchr(at, ':')) {
        if (*at == ':') at++;
        if (strncmp(at, key, key_length) != 0) continue;
        const char end = strncmp(at + key_length, value, length) == 0 ? at[key_length + length] : 'x';
        is = end == ':' || end == '\0';
    }
    return is;
}

static bool is_wanted(void) {
    if (getauxval(AT_SECURE) || is_build_tool(program_invocation_short_name)) return false;
    const char* disable = getenv("NUMSAN_DISABLE");
    if (disable && *disable && strcmp(disable, "0") != 0) return false;
    return !option_is("tier=", "off");
}

/* ---- torch ---- */

static void set_thread_start(void (*start)(void)) { atomic_store_explicit(&thread_start, start, memory_order_release); }

/* Once per process, when torch is there. */
static void load_core(void) {
    if (!numsan_claim_torch()) return;
    static char folder[PATH_MAX];
    static struct numsan_stub_api api;
    atomic_store(&watching, false);
    numsan_call_core(NUMSAN_CORE_ATTACH_SYMBOL, &api, folder);
    numsan_injection_after_torch();
}

/* ---- the exit status ---- */

static atomic_int exit_status = -1;

static void set_exit_status(int status) { atomic_store(&exit_status, status); }

/* Registered before the program, its libraries' destructors included, registers anything: it runs after all of that,
 * and what is left to do at an exit is to write what stdio still holds. */
static void leave_with_status(int status, void* unused) {
    (void)unused;
    const int wanted = atomic_load(&exit_status);
    if (wanted < 0 || wanted == status) return;
    fflush(NULL);
    _exit(wanted);
}

/* ---- dlopen ---- */

/* Stands in for dlopen where the caller makes no difference to what is found. */
static void* watched_dlopen(const char* file, int mode) {
    dlopen_depth++;
    void* handle = numsan_real_dlopen()(file, mode);
    dlopen_depth--;
    if (handle && dlopen_depth == 0 && atomic_load(&watching) && numsan_is_mapped("libtorch_cpu.so")) load_core();
    return handle;
}

/* Whether `caller` is in the program itself and the program has no RUNPATH. (Its RPATH counts for everybody.) */
static bool is_plain_program(const void* caller) {
    Dl_info info;
    struct link_map* map = NULL;
    if (!dladdr1(caller, &info, (void**)&map, RTLD_DL_LINKMAP) || !map || map->l_prev) return false;
    for (const ElfW(Dyn)* entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_RUNPATH) return false;
    return true;
}

/* Where dlopen_hook.S jumps to. glibc looks at the caller only to find names without a slash, and for $ORIGIN: such
 * calls go straight on, unless the caller is known not to matter. */
void* numsan_dlopen_target(const char* file, int mode, const void* caller) {
    (void)mode;
    if (!file) return (void*)numsan_real_dlopen();
    numsan_cupti_opened(file);
    const numsan_dlopen_fn injecting = numsan_injection_dlopen(file);
    if (injecting) return (void*)injecting;
    if (atomic_load_explicit(&watching, memory_order_relaxed) && strstr(file, "torch") && !strchr(file, '$') &&
        (strchr(file, '/') || is_plain_program(caller)))
        return (void*)watched_dlopen;
    return (void*)numsan_real_dlopen();
}

/* ---- programs that are linked with torch ---- */

static int load_core_then_main(int argc, char** argv, char** envp) {
    load_core();
    return real_main(argc, argv, envp);
}

int __libc_start_main(main_fn program_main, int argc, char** argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void* stack_end) {
    libc_start_main_fn next = (libc_start_main_fn)dlsym(RTLD_NEXT, "__libc_start_main");
    if (!next) abort(); /* a program without a C library's start: it could not have come here */
    if (is_wanted()) {
        const char* own = numsan_find_own_path();
        /* The environment is the program's: it is added to where the user asks to see what no framework announces. */
        const bool asked = option_is("raw=", "1") || option_is("cupti=", "on");
        if (own[0] == '/' && asked) numsan_announce_injection(own);
        const struct numsan_stub_api offer = {
            .abi = NUMSAN_STUB_ABI,
            .size = sizeof offer,
            .set_thread_start = set_thread_start,
            .set_cupti_yield = numsan_set_cupti_yield,
            .other_injection = numsan_other_injection(),
            .first_process = (int32_t)getpid(),
            .set_nvtx_watch = numsan_set_nvtx_watch,
            .set_exit_status = set_exit_status,
            .replace_torch_calls = numsan_replace_torch_calls,
        };
        numsan_offer_core(&offer);
        on_exit(leave_with_status, NULL);
        atomic_store(&watching, true);
        if (numsan_is_mapped("libtorch_cpu.so")) {
            real_main = program_main;
            program_main = load_core_then_main;
        }
    }
    return next(program_main, argc, argv, init, fini, rtld_fini, stack_end);
}

/* ---- threads ---- */

struct start {
    void* (*routine)(void*);
    void* argument;
};

static void* thread_main(void* argument) {
    const struct start start = *(struct start*)argument;
    free(argument);
    void (*hook)(void) = atomic_load_explicit(&thread_start, memory_order_acquire);
    if (hook) {
        int state;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
        hook();
        pthread_setcancelstate(state, NULL);
    }
    return start.routine(start.argument);
}

EXPORTED int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                            void* argument) {
    static _Atomic(void*) cache;
    pthread_create_fn next = (pthread_create_fn)numsan_next_symbol(&cache, "pthread_create");
    if (!next) return EAGAIN;
    if (!atomic_load_explicit(&thread_start, memory_order_relaxed)) return next(thread, attributes, routine, argument);
    struct start* start = malloc(sizeof *start);
    if (!start) return next(thread, attributes, routine, argument);
    *start = (struct start){routine, argument};
    const int error = next(thread, attributes, thread_main, start);
    if (error) free(start);
    return error;
}
