/* Stands in for libnumsan_core.so: writes what happens to it to the file named by NUMSAN_TEST_TRACE, one line each. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpose/runtime/stub_abi.h"

static void trace(const char* text) {
    const char* path = getenv("NUMSAN_TEST_TRACE");
    int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (file < 0) return;
    ssize_t written = write(file, text, strlen(text));
    (void)written;
    close(file);
}

static void on_thread_start(void) { trace("thread\n"); }

static int on_nvtx(numsan_nvtx_export_fn get_export_table) {
    trace(get_export_table(1) ? "nvtx\n" : "nvtx without callbacks\n");
    return 1;
}

__attribute__((visibility("default"))) int numsan_core_attach(const struct numsan_stub_api* stub) {
    char line[5000];
    snprintf(line, sizeof line, "attach %u %d %s\n", stub->abi, stub->size == sizeof *stub, stub->lib_dir);
    trace(line);
    stub->set_thread_start(on_thread_start);
    stub->set_nvtx_watch(on_nvtx);
    errno = EDOM; /* the stub gives the caller its own errno back */
    return 0;
}
