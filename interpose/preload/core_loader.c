/* Finds and loads libnumsan_core.so, and looks what is mapped. The base of the other sources: it calls none of them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpose/preload/preload.h"

static struct numsan_stub_api offered;
static atomic_bool core_asked;   /* to attach to torch */
static atomic_bool core_is_ours; /* from before we load it */
static char own_path[PATH_MAX];  /* of this library, absolute; "" where it is not known */

void numsan_offer_core(const struct numsan_stub_api* offer) { offered = *offer; }

void* numsan_next_symbol(_Atomic(void*)* cache, const char* name) {
    void* found = atomic_load_explicit(cache, memory_order_relaxed);
    if (!found) {
        found = dlsym(RTLD_NEXT, name);
        atomic_store_explicit(cache, found, memory_order_relaxed);
    }
    return found;
}

numsan_dlopen_fn numsan_real_dlopen(void) {
    static _Atomic(void*) cache;
    return (numsan_dlopen_fn)numsan_next_symbol(&cache, "dlopen");
}

static const char* base_name(const char* path) {
    const char* slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool numsan_is_named(const char* path, const char* prefix) {
    return strncmp(base_name(path), prefix, strlen(prefix)) == 0;
}

static int is_library(struct dl_phdr_info* info, size_t size, void* prefix) {
    (void)size;
    return info->dlpi_name && numsan_is_named(info->dlpi_name, prefix);
}

bool numsan_is_mapped(const char* prefix) { return dl_iterate_phdr(is_library, (void*)prefix) != 0; }

static void say_off(const char* reason, const char* detail) {
    static atomic_bool said;
    if (atomic_exchange(&said, true)) return;
    char line[2 * PATH_MAX];
    int length = snprintf(line, sizeof line, "numsan: off: %s%s\n", reason, detail);
    if (length >= (int)sizeof line) length = (int)sizeof line - 1;
    ssize_t written = write(STDERR_FILENO, line, (size_t)length);
    (void)written;
}

static bool has_core(const char* folder) {
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/libnumsan_core.so", folder);
    return access(path, R_OK) == 0;
}

/* Where this library is, as the loader knows it; to be asked while the program's folder is still the current one. Every
 * process comes here: stdio and malloc would cost most of them their first page faults. */
const char* numsan_find_own_path(void) {
    Dl_info info;
    if (!dladdr((void*)numsan_find_own_path, &info) || !info.dli_fname) return own_path;
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
    return own_path;
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
    *api = offered;
    api->lib_dir = folder;
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

bool numsan_claim_torch(void) { return !atomic_exchange(&core_asked, true); }

bool numsan_torch_is_due(void) { return !atomic_load(&core_asked) && numsan_is_mapped("libtorch_cpu.so"); }
