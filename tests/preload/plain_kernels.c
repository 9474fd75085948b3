// A CUDA program without torch, on the fake driver: kernels under the names that nvcc gives theirs, and ways to use
// them, of which the first argument names one.
#include <cuda.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRY(call)                              \
    do {                                       \
        const int error_ = (call);             \
        if (error_) {                          \
            printf("%s: %d\n", #call, error_); \
            exit(3);                           \
        }                                      \
    } while (0)
#define ARRAY(i) (*(float**)arguments[i])
#define NUMBER(i) (*(float*)arguments[i])
#define COUNT(i) (*(int*)arguments[i])
/// A kernel, and how many bytes each of its arguments has.
#define KERNEL(name, ...)                        \
    const int name##_sizes[] = {__VA_ARGS__, 0}; \
    void name(void** arguments)

enum { kCount = 256 };

KERNEL(_Z4fillPffi, 8, 4, 4) {  // fill(float*, float, int)
    for (int i = 0; i < COUNT(2); i++) ARRAY(0)[i] = NUMBER(1);
}
KERNEL(_Z6dividePfPKfS1_i, 8, 8, 8, 4) {  // divide(float*, float const*, float const*, int)
    for (int i = 0; i < COUNT(3); i++) ARRAY(0)[i] = ARRAY(1)[i] / ARRAY(2)[i];
}
KERNEL(_Z4rootPfi, 8, 4) {  // root(float*, int)
    for (int i = 0; i < COUNT(1); i++) ARRAY(0)[i] = sqrtf(ARRAY(0)[i]);
}
KERNEL(_Z4growPffi, 8, 4, 4) {  // grow(float*, float, int)
    for (int i = 0; i < COUNT(2); i++) ARRAY(0)[i] *= NUMBER(1);
}
KERNEL(_Z5relaxPfPKfi, 8, 8, 4) {  // relax(float*, float const*, int)
    for (int i = 1; i < COUNT(2); i++) ARRAY(0)[i] = fminf(ARRAY(0)[i], ARRAY(0)[i - 1] + ARRAY(1)[i]);
}
KERNEL(_ZN4math6updateIfEEvPT_PKS1_S1_i, 8, 8, 4, 4) {  // void math::update<float>(float*, float const*, float, int)
    for (int i = 0; i < COUNT(3); i++) ARRAY(0)[i] -= NUMBER(2) * ARRAY(1)[i] * ARRAY(1)[i];
}
KERNEL(_Z5tracePfPKfi, 8, 8, 4) {  // trace(float*, float const*, int)
    for (int i = 0; i < COUNT(2); i++) ARRAY(0)[i] = i % 2 ? ARRAY(1)[i] : INFINITY;
}
KERNEL(_ZN4heat4stepIdEEvPKT_PS1_S1_i, 8, 8, 8, 4) {  // void heat::step<double>(double const*, double*, double, int)
    const double *from = *(double**)arguments[0], rate = *(double*)arguments[2];
    double* to = *(double**)arguments[1];
    for (int i = 0; i < COUNT(3); i++) {
        const double left = i > 0 ? from[i - 1] : 0, right = i + 1 < COUNT(3) ? from[i + 1] : 0;
        to[i] = from[i] + rate * (left - 2 * from[i] + right);
    }
}
KERNEL(opaque, 8) { ARRAY(0)[3] = NAN; }  // extern "C"

static CUfunction fill, divide, root, grow, relax, update, trace, unnamed;
static CUdeviceptr x, y, z;
static int n = kCount;

static void launch(CUfunction kernel, CUstream stream, void** arguments) {
    TRY(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, 0));
}
#define LAUNCH(kernel, ...) launch(kernel, 0, (void*[]){__VA_ARGS__})

static void fill_with(CUdeviceptr buffer, float value) { LAUNCH(fill, &buffer, &value, &n); }
static void upload(CUdeviceptr to, float first, float step) {
    float values[kCount];
    for (int i = 0; i < kCount; i++) values[i] = first + step * i;
    TRY(cuMemcpyHtoDAsync(to, values, sizeof values, 0));
    TRY(cuCtxSynchronize());
}
static void show(CUdeviceptr from) {
    float values[kCount];
    TRY(cuMemcpyDtoHAsync(values, from, sizeof values, 0));
    TRY(cuCtxSynchronize());
    printf("%g %g\n", fabsf(values[0]), fabsf(values[3]));
    fflush(stdout);
}

static void train(float rate) {
    for (int step = 0; step < 30; step++) LAUNCH(update, &x, &y, &rate, &n);
    show(x);
}

static void grow_by(float factor) {
    upload(x, 1, 1);
    for (int step = 0; step < 20; step++) LAUNCH(grow, &x, &factor, &n);
    show(x);
}

static CUcontext context;
static void* divide_on_a_stream(void* divisor) {
    CUstream stream;
    CUdeviceptr to, by;
    float value = *(float*)divisor, values[kCount];
    TRY(cuCtxSetCurrent(context));
    TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    TRY(cuMemAlloc(&to, sizeof values));
    TRY(cuMemAlloc(&by, sizeof values));
    for (int turn = 0; turn < 50; turn++) {
        void* filled[] = {&by, &value, &n};
        launch(fill, stream, filled);
        void* divided[] = {&to, &x, &by, &n};
        launch(divide, stream, divided);
        TRY(cuMemcpyDtoHAsync(values, to, sizeof values, stream));
        TRY(cuStreamSynchronize(stream));
    }
    TRY(cuMemFree(to));
    TRY(cuMemFree(by));
    return 0;
}
static void divide_in_threads(float first, float second) {
    pthread_t threads[2];
    TRY(pthread_create(&threads[0], 0, divide_on_a_stream, &first));
    TRY(pthread_create(&threads[1], 0, divide_on_a_stream, &second));
    for (int i = 0; i < 2; i++) TRY(pthread_join(threads[i], 0));
}

static void replay_on_missing_values(void) {
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    LAUNCH(root, &z, &n);
    TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    TRY(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    launch(root, stream, (void*[]){&z, &n});
    TRY(cuStreamEndCapture(stream, &graph));
    TRY(cuGraphInstantiate(&exec, graph, 0));
    upload(z, NAN, 0);
    TRY(cuGraphLaunch(exec, stream));
    TRY(cuStreamSynchronize(stream));
    LAUNCH(root, &z, &n);
}

/// Both buffers lie in one allocation.
static void spread_heat(CUmodule module, double rate) {
    CUfunction step;
    CUdeviceptr pool;
    double values[kCount] = {[kCount / 2] = 1};
    TRY(cuModuleGetFunction(&step, module, "_ZN4heat4stepIdEEvPKT_PS1_S1_i"));
    TRY(cuMemAlloc(&pool, 2 * sizeof values));
    CUdeviceptr from = pool, to = pool + sizeof values;
    TRY(cuMemcpyHtoDAsync(from, values, sizeof values, 0));
    for (int i = 0; i < 2000; i++) {
        LAUNCH(step, &from, &to, &rate, &n);
        const CUdeviceptr next = from;
        from = to, to = next;
    }
    TRY(cuMemcpyDtoHAsync(values, from, sizeof values, 0));
    TRY(cuCtxSynchronize());
    printf("%g\n", fabs(values[kCount / 2]));
}

static int run(const char* way, CUmodule module) {
#define IS(name) (strcmp(way, name) == 0)
    if (IS("healthy")) LAUNCH(divide, &z, &x, &y, &n);
    if (IS("divide")) fill_with(y, 0);
    if (IS("zero by zero")) fill_with(x, 0), fill_with(y, 0);
    if (IS("divide") || IS("zero by zero")) LAUNCH(divide, &z, &x, &y, &n);
    if (IS("root")) upload(z, -3, 1);
    if (IS("root of positive")) upload(z, 3, 1);
    if (IS("root") || IS("root of positive")) LAUNCH(root, &z, &n);
    if (IS("grow")) grow_by(2);
    if (IS("grow too fast")) grow_by(100);
    if (IS("train")) train(1e-3f);
    if (IS("train too fast")) upload(y, 1e18f, 1e18f), train(10);
    if (IS("paths")) {  // infinities that are meant
        for (int turn = 0; turn < 3; turn++) {
            fill_with(z, INFINITY);
            LAUNCH(relax, &z, &x, &n);
            show(z);
        }
    }
    if (IS("missing values")) upload(x, NAN, 0), LAUNCH(divide, &z, &x, &y, &n);
    if (IS("misses")) LAUNCH(trace, &z, &x, &n);  // what is not hit is infinitely far
    if (IS("part of a buffer")) {
        const CUdeviceptr half = z + sizeof(float) * kCount / 2;
        int less = kCount / 2;
        LAUNCH(root, (void*)&half, &less);
        fill_with(y, 0);
        LAUNCH(divide, &z, &x, &y, &n);
        LAUNCH(root, (void*)&half, &less);
    }
    if (IS("heat")) spread_heat(module, 0.4);
    if (IS("heat too fast")) spread_heat(module, 0.9);
    if (IS("graph")) replay_on_missing_values();
    if (IS("opaque")) LAUNCH(unnamed, &x), LAUNCH(divide, &z, &x, &y, &n);
    if (IS("opaque in place")) LAUNCH(root, &z, &n), LAUNCH(unnamed, &z), LAUNCH(root, &z, &n);
    if (IS("opaque afterwards")) fill_with(y, 0), LAUNCH(divide, &z, &x, &y, &n), LAUNCH(unnamed, &x);
    if (IS("threads")) divide_in_threads(1, 2);
    if (IS("one thread of two")) divide_in_threads(1, 0);
    if (IS("fork")) {
        LAUNCH(divide, &z, &x, &y, &n);
        show(z);
        const pid_t child = fork();
        if (child == 0) return 0;
        int status = 1;
        waitpid(child, &status, 0);
        fill_with(y, 0);
        LAUNCH(divide, &z, &x, &y, &n);
        printf("%d\n", status);
    }
    show(z);
    return 0;
}

int main(int argc, char** argv) {
    CUmodule module;
    (void)argc;
    TRY(cuInit(0));
    TRY(cuDevicePrimaryCtxRetain(&context, 0));
    TRY(cuCtxSetCurrent(context));
    TRY(cuModuleLoadData(&module, "host functions"));
    TRY(cuModuleGetFunction(&fill, module, "_Z4fillPffi"));
    TRY(cuModuleGetFunction(&divide, module, "_Z6dividePfPKfS1_i"));
    TRY(cuModuleGetFunction(&root, module, "_Z4rootPfi"));
    TRY(cuModuleGetFunction(&grow, module, "_Z4growPffi"));
    TRY(cuModuleGetFunction(&relax, module, "_Z5relaxPfPKfi"));
    TRY(cuModuleGetFunction(&update, module, "_ZN4math6updateIfEEvPT_PKS1_S1_i"));
    TRY(cuModuleGetFunction(&trace, module, "_Z5tracePfPKfi"));
    TRY(cuModuleGetFunction(&unnamed, module, "opaque"));
    TRY(cuMemAlloc(&x, sizeof(float) * kCount));
    TRY(cuMemAlloc(&y, sizeof(float) * kCount));
    TRY(cuMemAlloc(&z, sizeof(float) * kCount));
    fill_with(x, 1);
    fill_with(y, 1);
    fill_with(z, 1);
    return run(argv[1], module);
}
