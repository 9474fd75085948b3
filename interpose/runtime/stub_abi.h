/* The C boundary between libnumsan.so (preloaded, C) and libnumsan_core.so. Plain C: both sides include it.
 * A change of meaning raises NUMSAN_STUB_ABI; new members go to the end. */
#pragma once

#include <stdint.h>

#define NUMSAN_STUB_ABI 1u
#define NUMSAN_CORE_ATTACH_SYMBOL "numsan_core_attach"
#define NUMSAN_CORE_CUDA_SYMBOL "numsan_core_cuda"

typedef const void* (*numsan_nvtx_export_fn)(uint32_t table);

/* Functions of torch that libnumsan.so stands in for (interpose/preload/torch_calls.S), with torch's own signatures. */
struct numsan_torch_calls {
    void* node_callbacks;  /* at::getStepCallbacksUnlessEmpty, not for operators */
    void* scope_callbacks; /* at::getStepCallbacks */
    void* accumulate;      /* torch::autograd::AccumulateGrad::apply */
    void* accumulate_seen; /* of torch's own: the address by which the process's libraries know `accumulate` */
};

/* What the stub offers the core. Lives as long as the process. */
struct numsan_stub_api {
    uint32_t abi;
    uint32_t size; /* of this struct, in bytes */

    /* [MT] From now on every thread that pthread_create makes calls `start` before its own routine, with cancellation
     * disabled. Null switches that off again. `start` must return. */
    void (*set_thread_start)(void (*start)(void));

    const char* lib_dir; /* folder of libnumsan_core.so, beside which adapter/ lies; absolute, without a final slash */

    /* [MT] From now on, before another library subscribes to CUPTI, `yield` is called on its thread: our subscription
     * has ended when it returns; with `for_good` it is not to be taken again. `again` is called when its has ended.
     * Null switches both off. Neither may throw. */
    void (*set_cupti_yield)(void (*yield)(int for_good), void (*again)(void));

    const char* other_injection; /* the library that CUDA_INJECTION64_PATH names if it is not ours, else null */

    int32_t first_process; /* pid of the process that this program was started in; that of a fork is another */

    /* From now on `watch` is called for every copy of NVTX that is used for the first time, on any thread, with its
     * nvtxGetExportTable. It returns 1 when it listens, 0 otherwise, and does not throw. */
    void (*set_nvtx_watch)(int (*watch)(numsan_nvtx_export_fn get_export_table));

    /* [MT] The process ends with this status, whatever it ends with itself, once all that runs at its exit has run. */
    void (*set_exit_status)(int status);

    /* [MT] From now on `ours` are called in the place of torch's, those that are null excepted. Returns 1 and torch's
     * own in `theirs`, 0 where they are not to be had. Whether torch itself calls them through us is for the caller
     * to find out: a library may be bound to its own functions. */
    int (*replace_torch_calls)(const struct numsan_torch_calls* ours, struct numsan_torch_calls* theirs);
};

/* Exported by the core under the two names above; returns 0, or 1 when the core stands down, which it has said.
 *
 * NUMSAN_CORE_ATTACH_SYMBOL: called once, when torch is there, outside of any dlopen, with the dynamic linker's lock
 * not held.
 * NUMSAN_CORE_CUDA_SYMBOL: called once, inside cuInit, on whatever thread, before the other or after it or on another
 * thread at the same time. No call of CUDA's is allowed there, and the calling thread may hold the interpreter's lock,
 * or be waited for by the thread that does. */
typedef int (*numsan_core_entry_fn)(const struct numsan_stub_api* stub);
