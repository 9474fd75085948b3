/* The C boundary between libnumsan.so (preloaded, C) and libnumsan_core.so. Plain C: both sides include it.
 * A change of meaning raises NUMSAN_STUB_ABI; new members go to the end. */
#pragma once

#include <stdint.h>

#define NUMSAN_STUB_ABI 1u
#define NUMSAN_CORE_ATTACH_SYMBOL "numsan_core_attach"

/* What the stub offers the core. Lives as long as the process. */
struct numsan_stub_api {
    uint32_t abi;
    uint32_t size; /* of this struct, in bytes */

    /* [MT] From now on every thread that pthread_create makes calls `start` before its own routine, with cancellation
     * disabled. Null switches that off again. `start` must return. */
    void (*set_thread_start)(void (*start)(void));

    const char* lib_dir; /* folder of libnumsan_core.so, beside which adapter/ lies; absolute, without a final slash */
};

/* Exported by the core under NUMSAN_CORE_ATTACH_SYMBOL. Called once, outside of any dlopen, with the dynamic linker's
 * lock not held. Returns 0, or 1 when the core stands down; it has said why. */
typedef int (*numsan_core_attach_fn)(const struct numsan_stub_api* stub);
