/* libnumsan.so, the library that is preloaded. C and libc only. It waits for torch: when libtorch_cpu.so has been
 * mapped (by a dlopen, or with the program itself) it loads libnumsan_core.so once. So it does when CUDA is initialised
 * (injection.c). Everything else it passes through untouched.
 *
 * Interposed: dlopen (dlopen_hook.S), __libc_start_main, pthread_create, and four functions of CUPTI (cupti.c).
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
static atomic_bool core_asked;
static atomic_bool core_is_ours; /* from before we load it */
static _Atomic(void (*)(void)) thread_start;
static main_fn real_main;
static int32_t first_process;
static char own_path[PATH_MAX]; /* of this library, absolute; "" where it is not known */

/* Depth of watched dlopens on this thread: inside one, torch may be mapped but not initialised. */
static __thread int dlopen_depth __attribute__((tls_model("initial-exec")));

/* The next definition of `name` after ours. Looked up every time it is null: a caller may come before our constructor.
 */
static void* next_symbol(_Atomic(void*)* cache, const char* name) {
    void* found = atomic_load_explicit(cache, memory_order_relaxed);
    if (!found) {
        found = dlsym(RTLD_NEXT, name);
        atomic_store_explicit(cache, found, memory_order_relaxed);
    }
    return found;
}

numsan_dlopen_fn numsan_real_dlopen(void) {
    static _Atomic(void*) cache;
    return (numsan_dlopen_fn)next_symbol(&cache, "dlopen");
}

static void say_off(const char* reason, const char* detail) {
    static atomic_bool said;
    if (atomic_exchange(&said, true)) return;
    char line[2 * PATH_MAX];
    int length = snprintf(line, sizeof line, "numsan: off: %s%s\n", reason, detail);
    if (length >= (int)sizeof line) length = (int)sizeof line - 1;
    ssize_t written = write(STDERR_FILENO, line, (size_t)length);
    (void)written;
}

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

/* ---- whether torch is there ---- */

static const char* base_name(const char* path) {
    const char* slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int is_library(struct dl_phdr_info* info, size_t size, void* prefix) {
    (void)size;
    return info->dlpi_name && strncmp(base_name(info->dlpi_name), prefix, strlen(prefix)) == 0;
}

bool numsan_is_mapped(const char* prefix) { return dl_iterate_phdr(is_library, (void*)prefix) != 0; }

/* ---- loading the core ---- */

static void set_thread_start(void (*start)(void)) { atomic_store_explicit(&thread_start, start, memory_order_release); }

static bool has_core(const char* folder) {
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/libnumsan_core.so", folder);
    return access(path, R_OK) == 0;
}

/* Where this library is, as the loader knows it; to be asked while the program's folder is still the current one. Every
 * process comes here: stdio and malloc would cost most of them their first page faults. */
static void find_own_path(void) {
    Dl_info info;
    if (!dladdr((void*)set_thread_start, &info) || !info.dli_fname) return;
    const size_t length = strlen(info.dli_fname) + 1;
    size_t folder = 0;
    if (info.dli_fname[0] != '/' && getcwd(own_path, sizeof own_path)) {
        folder = strlen(own_path);
        own_path[folder++] = '/';
    }
    if (folder + length <= sizeof own_path)
        memcpy(own_path + folder, info.dli_fname, length);
    else
        own_path[0] = '\0';
}

const char* numsan_own_path(void) { return own_path; }

/* The folder of libnumsan_core.so: ours, ours/../lib, or that of the file that our name is a link to. */
static bool find_core(char folder[PATH_MAX]) {
    if (!own_path[0]) return false;
    char resolved[PATH_MAX];
    const char* const starts[] = {own_path, realpath(own_path, resolved)};
    for (size_t i = 0; i < 2 && starts[i]; i++) {
        const int length = (int)(base_name(starts[i]) - starts[i]);
        if (length < 1) continue;
        snprintf(folder, PATH_MAX, "%.*s", length == 1 ? 1 : length - 1, starts[i]);
        if (has_core(folder)) return true;
        if (snprintf(folder, PATH_MAX, "%.*s../lib", length, starts[i]) < PATH_MAX && has_core(folder)) return true;
    }
    return false;
}

/* Two threads may be here at once: one that has loaded torch, one inside cuInit. Neither waits for the other. */
void numsan_call_core(const char* symbol, struct numsan_stub_api* api, char* folder) {
    const int saved_errno = errno;
    char path[PATH_MAX + 32];
    /* A second copy of this library is loaded, and was first. */
    if (!atomic_load(&core_is_ours) && numsan_is_mapped("libnumsan_core.so")) goto done;
    if (!find_core(folder)) {
        say_off("libnumsan_core.so is not beside ", own_path);
        goto done;
    }
    *api = (struct numsan_stub_api){
        NUMSAN_STUB_ABI,          sizeof *api,   set_thread_start,     folder, numsan_set_cupti_yield,
        numsan_other_injection(), first_process, numsan_set_nvtx_watch};
    snprintf(path, sizeof path, "%s/libnumsan_core.so", folder);
    atomic_store(&core_is_ours, true);
    void* core = numsan_real_dlopen()(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!core) {
        const char* reason = dlerror();
        say_off("", reason ? reason : "libnumsan_core.so cannot be loaded");
        goto done;
    }
    numsan_core_entry_fn entry = (numsan_core_entry_fn)dlsym(core, symbol);
    if (entry) {
        entry(api);
    } else {
        snprintf(path, sizeof path, "%s/libnumsan_core.so has no ", folder);
        say_off(path, symbol);
    }
done:
    dlerror();
    errno = saved_errno;
}

/* Once per process, when torch is there. */
static void load_core(void) {
    if (atomic_exchange(&core_asked, true)) return;
    static char folder[PATH_MAX];
    static struct numsan_stub_api api;
    atomic_store(&watching, false);
    numsan_call_core(NUMSAN_CORE_ATTACH_SYMBOL, &api, folder);
    numsan_injection_after_torch();
}

bool numsan_torch_is_due(void) { return !atomic_load(&core_asked) && numsan_is_mapped("libtorch_cpu.so"); }

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
        find_own_path();
        first_process = (int32_t)getpid();
        /* The environment is the program's: it is added to where the user asks to see what no framework announces. */
        const bool asked = option_is("raw=", "1") || option_is("cupti=", "on");
        if (own_path[0] == '/' && asked) numsan_announce_injection(own_path);
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
    pthread_create_fn next = (pthread_create_fn)next_symbol(&cache, "pthread_create");
    if (!next) return EAGAIN;
    if (!atomic_load_explicit(&thread_start, memory_order_relaxed)) return next(thread, attributes, routine, argument);
    struct start* start = malloc(sizeof *start);
    if (!start) return next(thread, attributes, routine, argument);
    *start = (struct start){routine, argument};
    const int error = next(thread, attributes, thread_main, start);
    if (error) free(start);
    return error;
}
