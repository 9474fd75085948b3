/* A C program that computes a logarithm with torch, for a build with the address sanitizer.
 * usage: with_sanitizer LIBTORCH_CPU VALUE [overrun]    overrun: writes past a block of its own at the end */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct tensor* handle;
static void* torch;

static void* function(const char* name) {
    void* found = dlsym(torch, name);
    if (!found) puts(name), exit(3);
    return found;
}

int main(int argc, char** argv) {
    if (argc < 3 || !(torch = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL))) {
        puts(dlerror());
        return 4;
    }
    const int32_t float32 = ((int32_t(*)(void))function("aoti_torch_dtype_float32"))();
    const int32_t cpu = ((int32_t(*)(void))function("aoti_torch_device_type_cpu"))();
    int32_t (*from_blob)(void*, int64_t, const int64_t*, const int64_t*, int64_t, int32_t, int32_t, int32_t, handle*) =
        function("aoti_torch_create_tensor_from_blob");
    int32_t (*call)(const char*, const char*, uint64_t*) = function("aoti_torch_call_dispatcher");
    int32_t (*item)(handle, float*) = function("aoti_torch_item_float32");
    int32_t (*drop)(handle) = function("aoti_torch_delete_tensor_object");

    float* data = malloc(sizeof *data);
    *data = strtof(argv[2], NULL);
    const int64_t one = 1;
    handle x = NULL;
    if (from_blob(data, 1, &one, &one, 0, float32, cpu, 0, &x)) return 5;
    uint64_t stack[1] = {(uintptr_t)x};
    if (call("aten::log", "", stack)) return 6; /* BUG */
    float result = 0;
    if (item((handle)(uintptr_t)stack[0], &result) || drop((handle)(uintptr_t)stack[0])) return 7;
    printf("log %a\n", result);
    fflush(stdout);
    volatile int at = argc > 3 ? 1 : 0;
    data[at] = 2;
    free(data);
    return 0;
}
