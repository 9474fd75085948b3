/* NVTX's own way in: at its first call a copy of NVTX loads the library that NVTX_INJECTION64_PATH names, and calls
 * its InitializeInjectionNvtx2. The variable is set to this library when torch is attached, where nobody has set it.
 *
 * Children inherit the variable. Where the core has not been attached yet, or never is, NVTX is told that there is no
 * tool, and stays as it is without one. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/preload/preload.h"

EXPORTED int InitializeInjectionNvtx2(numsan_nvtx_export_fn get_export_table);

static const char kVariable[] = "NVTX_INJECTION64_PATH";
static _Atomic(int (*)(numsan_nvtx_export_fn)) core_watch;

/* Another copy of this library, of a parent that was started by another: it would wait for a core of its own. */
static bool is_a_copy(const char* path) {
    const char* slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, "libnumsan.so") == 0;
}

void numsan_set_nvtx_watch(int (*watch)(numsan_nvtx_export_fn)) {
    const char* own = numsan_own_path();
    const char* set = getenv(kVariable);
    atomic_store(&core_watch, watch);
    if (own[0] == '/' && (!set || !*set || is_a_copy(set))) setenv(kVariable, own, 1);
}

/* 1 is success. */
int InitializeInjectionNvtx2(numsan_nvtx_export_fn get_export_table) {
    int (*watch)(numsan_nvtx_export_fn) = atomic_load(&core_watch);
    return watch && get_export_table ? watch(get_export_table) : 0;
}
