/* A program that was built with the address sanitizer, or runs under its library, ends at its start where another
 * library was preloaded before it, unless verify_asan_link_order is off. The sanitizer asks this function for options
 * while it starts; we come before it in the order of symbols. What the program itself or ASAN_OPTIONS says counts more.
 *
 * The search for leaks guesses the size of a library's thread-local block from the words before it. Of ours it guessed
 * wrong and crashed (gcc 12, "Tracer caught signal 11"); with intercept_tls_get_addr off it finds the block as memory
 * that the thread points to.
 *
 * Nothing of libc's is called but dlsym: the sanitizer has not yet looked up the functions that it stands in for. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#include "interpose/preload/preload.h"

EXPORTED const char* __asan_default_options(void);

const char* __asan_default_options(void) {
    static const char own[] = ":verify_asan_link_order=0:intercept_tls_get_addr=0";
    static volatile char joined[4096]; /* volatile: a loop that copies is not made a call of strlen or memcpy */
    const char* (*next)(void) = (const char* (*)(void))dlsym(RTLD_NEXT, "__asan_default_options");
    const char* theirs = next ? next() : "";
    size_t length = 0;
    while (theirs[length]) {
        if (length + sizeof own == sizeof joined) return theirs;
        joined[length] = theirs[length];
        length++;
    }
    for (size_t i = 0; i < sizeof own; i++) joined[length + i] = own[i];
    return (const char*)joined;
}
