/* What the sources of libnumsan.so share. C and libc only. */
#pragma once

#include <stdbool.h>

#include "interpose/runtime/stub_abi.h"

#define EXPORTED __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))

typedef void* (*numsan_dlopen_fn)(const char*, int);

/* ---- core_loader.c ---- */

/* The next definition of `name` after ours. Looked up every time it is null: a caller may come before our constructor.
 */
void* numsan_next_symbol(_Atomic(void*)* cache, const char* name) HIDDEN;
/* The next dlopen after ours. It takes us for the caller: only for names with a slash, or that no RUNPATH has. */
numsan_dlopen_fn numsan_real_dlopen(void) HIDDEN;

/* Whether the last part of `path` starts with `prefix`. */
bool numsan_is_named(const char* path, const char* prefix) HIDDEN;
/* Whether an object whose file name starts with `prefix` is mapped. Takes the dynamic linker's lock for a moment. */
bool numsan_is_mapped(const char* prefix) HIDDEN;

/* Where this library is, as the loader knows it; to be asked while the program's folder is still the current one. */
const char* numsan_find_own_path(void) HIDDEN;
/* Where this library is, absolute, for as long as the process; "" where it is not known. */
const char* numsan_own_path(void) HIDDEN;

/* At the start of a process that is wanted: what the core is offered, less `lib_dir`. */
void numsan_offer_core(const struct numsan_stub_api* offer) HIDDEN;
/* Whether the core has not been asked to attach to torch yet: it is from now on. */
bool numsan_claim_torch(void) HIDDEN;
/* Whether torch is there and the core has not been asked to attach to it yet. */
bool numsan_torch_is_due(void) HIDDEN;

/* Loads the core if need be and calls its entry `symbol` with `api`, whose `lib_dir` is set to `folder`, a buffer of
 * PATH_MAX bytes. Both belong to the process from then on. What fails is said once. errno and dlerror() stay. */
void numsan_call_core(const char* symbol, struct numsan_stub_api* api, char* folder) HIDDEN;

/* ---- injection.c: the driver's way in ---- */

/* At the start of a process that is wanted: `own` is the absolute path of this library, for as long as the process. */
void numsan_announce_injection(const char* own) HIDDEN;
/* CUDA_INJECTION64_PATH as another tool had set it, else null. */
const char* numsan_other_injection(void) HIDDEN;
/* What dlopen(file) is to go to when it is the driver that loads another tool's injection library, else null. */
numsan_dlopen_fn numsan_injection_dlopen(const char* file) HIDDEN;
/* The core has been attached to torch: it hears now if CUDA was initialised while torch was still being loaded. */
void numsan_injection_after_torch(void) HIDDEN;

/* ---- nvtx.c: ranges that the program names ---- */

void numsan_set_nvtx_watch(int (*watch)(numsan_nvtx_export_fn get_export_table)) HIDDEN;

/* ---- torch_calls.c: functions of torch that we stand in for ---- */

int numsan_replace_torch_calls(const struct numsan_torch_calls* ours, struct numsan_torch_calls* theirs) HIDDEN;

/* ---- torch_callers.c: which torch a caller of them belongs to ---- */

enum { NUMSAN_TORCH_CALLS = 3 };
extern const char* const numsan_torch_call_names[NUMSAN_TORCH_CALLS] HIDDEN;

/* A library that calls them: where it lies, and what it would call without us. */
struct numsan_torch_caller {
    uintptr_t begin, end;
    void* functions[NUMSAN_TORCH_CALLS];
    bool is_torch; /* is named as torch's library, and calls its own functions */
};
/* What the library with the address `caller` would call without us; null where none of the process defines it. Where
 * that had to be looked up, `found` says more of it, else it is no torch. */
void* numsan_own_torch_call(int which, uintptr_t caller, struct numsan_torch_caller* found) HIDDEN;
/* False: there is none. */
bool numsan_find_torch(struct numsan_torch_caller* found) HIDDEN;
/* It stays where it is for as long as the process. False: it may not. */
bool numsan_keep_torch(const struct numsan_torch_caller* torch) HIDDEN;

/* ---- cupti.c: others who want CUPTI ---- */

void numsan_set_cupti_yield(void (*yield)(int for_good), void (*again)(void)) HIDDEN;
/* A library opens `file`: if it is CUPTI, its functions may be looked up past us, and ours is given up. */
void numsan_cupti_opened(const char* file) HIDDEN;
