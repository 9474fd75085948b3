/* NVTX's own way in: at its first call a copy of NVTX loads the library that NVTX_INJECTION64_PATH names, and calls
 * its InitializeInjectionNvtx2. The variable is set to this library when torch is attached, where it is not set.
 *
 * Children inherit the variable. Where the core has not been attached yet, or never is, NVTX is answered that there is
 * no tool, and stays as it is without one. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpose/preload/preload.h"

EXPORTED int InitializeInjectionNvtx2(numsan_nvtx_export_fn get_export_table);

static const char kVariable[] = "NVTX_INJECTION64_PATH";
static _Atomic(int (*)(numsan_nvtx_export_fn)) core_watch;

/* Another copy of this library, of a parent that was started by another: it would wait for a core of its own. */
static bool is_a_copy(const char* path) {
    const char* slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, "libnumsan.so") == 0;
}

/* setenv may free the array that another thread's getenv is reading. This one stays, as does the one before it. */
static void set_variable(const char* own) {
    static char** volatile kept; /* reachable, whatever the program makes of environ */
    size_t count = 0, at = 0;
    while (environ && environ[count]) count++;
    const size_t name = sizeof kVariable - 1, length = strlen(own) + 1;
    char** copy = malloc((count + 2) * sizeof *copy);
    char* assignment = malloc(name + 1 + length);
    if (!copy || !assignment) {
        free(copy);
        free(assignment);
        return;
    }
    memcpy(assignment, kVariable, name);
    assignment[name] = '=';
    memcpy(assignment + name + 1, own, length);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(environ[i], assignment, name + 1) != 0) copy[at++] = environ[i];
    }
    copy[at++] = assignment;
    copy[at] = NULL;
    environ = kept = copy;
}

void numsan_set_nvtx_watch(int (*watch)(numsan_nvtx_export_fn)) {
    const char* own = numsan_own_path();
    const char* set = getenv(kVariable);
    atomic_store(&core_watch, watch);
    if (own[0] == '/' && (!set || !*set || is_a_copy(set))) set_variable(own);
}

/* 1 is success. */
int InitializeInjectionNvtx2(numsan_nvtx_export_fn get_export_table) {
    int (*watch)(numsan_nvtx_export_fn) = atomic_load(&core_watch);
    return watch && get_export_table ? watch(get_export_table) : 0;
}
