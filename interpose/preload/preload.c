/* libnumsan.so, the library that is preloaded. C and libc only. It waits for torch: when libtorch_cpu.so has been
 * mapped (by a dlopen, or with the program itself) it loads libnumsan_core.so once. Everything else it passes through
 * untouched.
 *
 * Interposed: dlopen (dlopen_hook.S), __libc_start_main, pthread_create. Nothing else is exported.
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

#include "interpose/core/stub_abi.h"

#define EXPORTED __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))

typedef void* (*dlopen_fn)(const char*, int);
typedef int (*pthread_create_fn)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
typedef int (*main_fn)(int, char**, char**);
typedef int (*libc_start_main_fn)(main_fn, int, char**, void (*)(void), void (*)(void), void (*)(void), void*);

void* numsan_dlopen_target(const char* file, int mode, const void* caller) HIDDEN;
EXPORTED int __libc_start_main(main_fn program_main, int argc, char** argv, void (*init)(void), void (*fini)(void),
                               void (*rtld_fini)(void), void* stack_end);

/* Watching begins when the libraries linked to the program have been initialised, and ends when the core has been asked
 * for. */
static atomic_bool watching;
static atomic_bool core_asked;
static _Atomic(void (*)(void)) thread_start;
static main_fn real_main;
static char
    start_folder[PATH_MAX]; /* where the program started; only set when the loader knows us by a relative path */

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

static dlopen_fn real_dlopen(void) {
    static _Atomic(void*) cache;
    return (dlopen_fn)next_symbol(&cache, "dlopen");
}

static void say_off(const char* reason, const char* detail) {
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

/* Whether the last tier= in NUMSAN_OPTIONS is off. */
static bool tier_is_off(const char* options) {
    bool off = false;
    for (const char* key = options; key; key = strchr(key, ':')) {
        if (*key == ':') key++;
        if (strncmp(key, "tier=", 5) == 0) off = strncmp(key + 5, "off", 3) == 0 && (key[8] == ':' || key[8] == '\0');
    }
    return off;
}

static bool is_wanted(void) {
    if (getauxval(AT_SECURE) || is_build_tool(program_invocation_short_name)) return false;
    const char* disable = getenv("NUMSAN_DISABLE");
    if (disable && *disable && strcmp(disable, "0") != 0) return false;
    return !tier_is_off(getenv("NUMSAN_OPTIONS"));
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

static bool is_mapped(const char* prefix) { return dl_iterate_phdr(is_library, (void*)prefix) != 0; }

/* ---- loading the core ---- */

static void set_thread_start(void (*start)(void)) { atomic_store_explicit(&thread_start, start, memory_order_release); }

static bool has_core(const char* folder) {
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/libnumsan_core.so", folder);
    return access(path, R_OK) == 0;
}

/* The folder of libnumsan_core.so: ours, ours/../lib, or that of the file that our name is a link to. */
static bool find_core(char own[PATH_MAX], char folder[PATH_MAX]) {
    Dl_info info;
    if (!dladdr((void*)set_thread_start, &info) || !info.dli_fname) return false;
    if (info.dli_fname[0] == '/' || !start_folder[0])
        snprintf(own, PATH_MAX, "%s", info.dli_fname);
    else if (snprintf(own, PATH_MAX, "%s/%s", start_folder, info.dli_fname) >= PATH_MAX)
        return false;
    char resolved[PATH_MAX];
    const char* const starts[] = {own, realpath(own, resolved)};
    for (size_t i = 0; i < 2 && starts[i]; i++) {
        const int length = (int)(base_name(starts[i]) - starts[i]);
        if (length < 1) continue;
        snprintf(folder, PATH_MAX, "%.*s", length == 1 ? 1 : length - 1, starts[i]);
        if (has_core(folder)) return true;
        if (snprintf(folder, PATH_MAX, "%.*s../lib", length, starts[i]) < PATH_MAX && has_core(folder)) return true;
    }
    return false;
}

/* Once per process. The caller's errno and dlerror() are as if nothing had happened after a successful dlopen. */
static void load_core(void) {
    if (atomic_exchange(&core_asked, true)) return;
    static char folder[PATH_MAX];
    static struct numsan_stub_api api = {NUMSAN_STUB_ABI, sizeof api, set_thread_start, folder};
    const int saved_errno = errno;
    atomic_store(&watching, false);
    char own[PATH_MAX] = "";
    char path[PATH_MAX + 32];
    if (is_mapped("libnumsan_core.so")) goto done; /* a second copy of this library is loaded, and was first */
    if (!find_core(own, folder)) {
        say_off("libnumsan_core.so is not beside ", own);
        goto done;
    }
    snprintf(path, sizeof path, "%s/libnumsan_core.so", folder);
    void* core = real_dlopen()(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!core) {
        const char* reason = dlerror();
        say_off("", reason ? reason : "libnumsan_core.so cannot be loaded");
        goto done;
    }
    numsan_core_attach_fn attach = (numsan_core_attach_fn)dlsym(core, NUMSAN_CORE_ATTACH_SYMBOL);
    if (attach)
        attach(&api);
    else
        say_off(path, " has no " NUMSAN_CORE_ATTACH_SYMBOL);
done:
    dlerror();
    errno = saved_errno;
}

/* ---- dlopen ---- */

/* Stands in for dlopen where the caller makes no difference to what is found. */
static void* watched_dlopen(const char* file, int mode) {
    dlopen_depth++;
    void* handle = real_dlopen()(file, mode);
    dlopen_depth--;
    if (handle && dlopen_depth == 0 && atomic_load(&watching) && is_mapped("libtorch_cpu.so")) load_core();
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
    if (atomic_load_explicit(&watching, memory_order_relaxed) && file && strstr(file, "torch") && !strchr(file, '$') &&
        (strchr(file, '/') || is_plain_program(caller)))
        return (void*)watched_dlopen;
    return (void*)real_dlopen();
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
        Dl_info info;
        if (dladdr((void*)set_thread_start, &info) && info.dli_fname && info.dli_fname[0] != '/' &&
            !getcwd(start_folder, sizeof start_folder))
            start_folder[0] = '\0';
        atomic_store(&watching, true);
        if (is_mapped("libtorch_cpu.so")) {
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
