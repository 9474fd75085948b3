/* Preloaded into the process that fork_server.py is: its children end once their programs and numsan have, without the
 * destructors of torch's libraries, which take out thousands of operators one by one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef void (*handler)(int status, void* argument);
typedef int (*register_handler)(handler, void*);

static handler first; /* runs last: numsan's, which may want another exit status */
static void* first_argument;
static pid_t server;

static int real_on_exit(handler function, void* argument) {
    const register_handler next = (register_handler)dlsym(RTLD_NEXT, "on_exit");
    return next ? next(function, argument) : -1;
}

static void end(int status, void* unused) {
    (void)unused;
    if (getpid() == server) return;
    if (first) first(status, first_argument);
    fflush(NULL);
    _exit(status);
}

/* Handlers run in reverse order. What numsan registers when torch is there runs before `end`, and `end` before the
 * destructors of what was loaded until then. */
void end_forks_early(void) {
    if (server) return;
    server = getpid();
    real_on_exit(end, NULL);
}

int on_exit(handler function, void* argument) {
    if (first) {
        end_forks_early();
    } else if (!server) {
        first = function;
        first_argument = argument;
    }
    return real_on_exit(function, argument);
}
