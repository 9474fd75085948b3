// A CUDA program without torch whose ranks exchange values by NCCL, on the fakes: ways to use it, of which the first
// argument names one. Two ranks, each on a device of its own, are driven by one thread, or by one each.
#include <cuda.h>
#include <math.h>
#include <nccl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call)                              \
    do {                                       \
        const int error_ = (int)(call);        \
        if (error_) {                          \
            printf("%s: %d\n", #call, error_); \
            exit(3);                           \
        }                                      \
    } while (0)
#define HALVES(i) (*(_Float16**)arguments[i])
#define ARRAY(i) (*(float**)arguments[i])
#define NUMBER(i) (*(float*)arguments[i])
#define COUNT(i) (*(int*)arguments[i])
#define KERNEL(name, ...)                        \
    const int name##_sizes[] = {__VA_ARGS__, 0}; \
    void name(void** arguments)

enum { kRanks = 2, kCount = 16 };

KERNEL(_Z4rootPfPKfi, 8, 8, 4) {  // root(float*, float const*, int)
    for (int i = 0; i < COUNT(2); i++) ARRAY(0)[i] = sqrtf(ARRAY(1)[i]);
}
KERNEL(_Z6updatePfPKffi, 8, 8, 4, 4) {  // update(float*, float const*, float, int)
    for (int i = 0; i < COUNT(3); i++) ARRAY(0)[i] -= NUMBER(2) * ARRAY(1)[i];
}
KERNEL(_Z6narrowP6__halfPKfi, 8, 8, 4) {  // narrow(__half*, float const*, int)
    for (int i = 0; i < COUNT(2); i++) HALVES(0)[i] = (_Float16)ARRAY(1)[i];
}

/// Of the fake driver's: there is no call of the driver's for it.
void set_devices(int count) __asm__("_ZN9fake_cuda11set_devicesEi");

/// A rank, with what it has on its device.
typedef struct {
    int rank;
    CUcontext context;
    CUmodule module;
    CUstream stream;
    ncclComm_t communicator;
    CUdeviceptr input, gradient, weight, all, halves, sums;
} Rank;
static Rank ranks[kRanks];
static const char* the_way;
#define IS(name) (strcmp(the_way, name) == 0)

#define ON(rank) ((cudaStream_t)(rank)->stream)
#define F32(address) ((float*)(address))
#define EACH(one) for (Rank* one = ranks; one < ranks + kRanks; one++)

static CUfunction kernel(const Rank* rank, const char* name) {
    CUfunction found;
    TRY(cuCtxSetCurrent(rank->context));
    TRY(cuModuleGetFunction(&found, rank->module, name));
    return found;
}
#define LAUNCH(rank, name, ...) \
    TRY(cuLaunchKernel(kernel(rank, name), 1, 1, 1, 1, 1, 1, 0, (rank)->stream, (void*[]){__VA_ARGS__}, 0))

static void upload(const Rank* rank, CUdeviceptr to, float value, int count) {
    float values[kRanks * kCount];
    for (int i = 0; i < count; i++) values[i] = value;
    TRY(cuCtxSetCurrent(rank->context));
    TRY(cuMemcpyHtoDAsync(to, values, sizeof(float) * (size_t)count, rank->stream));
    TRY(cuStreamSynchronize(rank->stream));
}
static CUdeviceptr floats(const Rank* rank, int count, float value) {
    CUdeviceptr made;
    TRY(cuCtxSetCurrent(rank->context));
    TRY(cuMemAlloc(&made, sizeof(float) * (size_t)count));
    upload(rank, made, value, count);
    return made;
}
static void show(const Rank* rank, CUdeviceptr from, int count) {
    float values[kRanks * kCount];
    TRY(cuCtxSetCurrent(rank->context));
    TRY(cuMemcpyDtoHAsync(values, from, sizeof(float) * (size_t)count, rank->stream));
    TRY(cuStreamSynchronize(rank->stream));
    printf("%d: %g %g\n", rank->rank, fabsf(values[0]), fabsf(values[count - 1]));
    fflush(stdout);
}

static void begin(Rank* rank, int device) {
    TRY(cuDevicePrimaryCtxRetain(&rank->context, device));
    TRY(cuCtxSetCurrent(rank->context));
    TRY(cuModuleLoadData(&rank->module, "host functions"));
    TRY(cuStreamCreate(&rank->stream, CU_STREAM_NON_BLOCKING));
    rank->input = floats(rank, kCount, 4);
    rank->gradient = floats(rank, kCount, 1);
    rank->weight = floats(rank, kCount, 1);
    rank->all = floats(rank, kRanks * kCount, 0);
    rank->halves = floats(rank, kCount / 2, 0);
    rank->sums = floats(rank, kCount / 2, 0);
}

/// The gradient of a root: of what is less than 0 there is none.
static void differentiate(Rank* rank, float of) {
    int count = kCount;
    upload(rank, rank->input, of, kCount);
    LAUNCH(rank, "_Z4rootPfPKfi", (void*)&rank->gradient, (void*)&rank->input, &count);  // the gradient
}
static void update(Rank* rank) {
    int count = kCount;
    float rate = 0.1f;
    LAUNCH(rank, "_Z6updatePfPKffi", (void*)&rank->weight, (void*)&rank->gradient, &rate, &count);
}

static void sum_all(void) {
    TRY(ncclGroupStart());
    EACH(one)
    TRY(ncclAllReduce(F32(one->gradient), F32(one->gradient), kCount, ncclFloat, ncclSum, one->communicator, ON(one)));
    TRY(ncclGroupEnd());  // of gradients
}

/// Gradients of 16 bits, `value` on each rank, are added up; `to`: in their own place or in another.
static void sum_halves(float value, int in_place) {
    int count = kCount;
    EACH(one) {
        float values[kCount];
        for (int i = 0; i < kCount; i++) values[i] = value / (float)(1 + i % 2);
        TRY(cuCtxSetCurrent(one->context));
        TRY(cuMemcpyHtoDAsync(one->input, values, sizeof values, one->stream));
        TRY(cuStreamSynchronize(one->stream));
        LAUNCH(one, "_Z6narrowP6__halfPKfi", (void*)&one->halves, (void*)&one->input, &count);
    }
    TRY(ncclGroupStart());
    EACH(one)
    TRY(ncclAllReduce((void*)one->halves, (void*)(in_place ? one->halves : one->sums), kCount, ncclHalf, ncclSum,
                      one->communicator, ON(one)));
    TRY(ncclGroupEnd());  // of halves
    EACH(one) {
        uint16_t values[kCount];
        TRY(cuCtxSetCurrent(one->context));
        TRY(cuMemcpyDtoHAsync(values, in_place ? one->halves : one->sums, sizeof values, one->stream));
        TRY(cuStreamSynchronize(one->stream));
        printf("%x %x\n", values[0], values[1]);
    }
}

/// The first rank hands its result on to the second.
static void hand_on(float of) {
    differentiate(ranks, of);
    TRY(ncclGroupStart());
    TRY(ncclSend(F32(ranks[0].gradient), kCount, ncclFloat, 1, ranks[0].communicator, ON(ranks)));
    TRY(ncclRecv(F32(ranks[1].gradient), kCount, ncclFloat, 0, ranks[1].communicator, ON(ranks + 1)));
    TRY(ncclGroupEnd());  // of a send
    update(ranks + 1);
    show(ranks + 1, ranks[1].weight, kCount);
}

/// As programs do that have a thread for each rank.
static void* run_rank(void* argument) {
    Rank* rank = (Rank*)argument;
    differentiate(rank, rank->rank == 1 && IS("a thread sends NaN") ? -1 : 4);
    TRY(ncclAllReduce(F32(rank->gradient), F32(rank->gradient), kCount, ncclFloat, ncclAvg, rank->communicator,
                      ON(rank)));
    update(rank);
    TRY(ncclReduceScatter(F32(rank->all), F32(rank->gradient), kCount, ncclFloat, ncclSum, rank->communicator,
                          ON(rank)));
    TRY(ncclAllGather(F32(rank->weight), F32(rank->all), kCount, ncclFloat, rank->communicator, ON(rank)));
    TRY(cuStreamSynchronize(rank->stream));
    return 0;
}
static void run_threads(void) {
    pthread_t threads[kRanks];
    EACH(one) TRY(pthread_create(&threads[one->rank], 0, run_rank, one));
    EACH(one) TRY(pthread_join(threads[one->rank], 0));
    EACH(one) show(one, one->all, kRanks * kCount);
}

static void run_alone(float of) {
    Rank* const alone = ranks;
    ncclComm_t communicator;
    TRY(ncclCommInitAll(&communicator, 1, 0));
    differentiate(alone, of);
    TRY(ncclAllReduce(F32(alone->gradient), F32(alone->all), kCount, ncclFloat, ncclSum, communicator, ON(alone)));
    TRY(ncclBcast(F32(alone->all), kCount, ncclFloat, 0, communicator, ON(alone)));
    show(alone, alone->all, kCount);
}

static void run(void) {
    if (IS("healthy") || IS("a rank sends NaN") || IS("a rank sends NaN and keeps none")) {
        EACH(one) differentiate(one, one->rank == 1 && !IS("healthy") ? -1 : 4);
        sum_all();
        EACH(one) update(one);
        if (!IS("a rank sends NaN and keeps none")) EACH(one) show(one, one->weight, kCount);
    }
    if (IS("missing values") || IS("an infinity arrives")) {
        upload(ranks + 1, ranks[1].gradient, IS("missing values") ? NAN : INFINITY, kCount);
        sum_all();
        EACH(one) update(one);
        EACH(one) show(one, one->weight, kCount);
    }
    if (IS("halves")) sum_halves(100, 0);
    if (IS("halves overflow")) sum_halves(40000, 0);
    if (IS("halves overflow in place")) sum_halves(40000, 1);
    if (IS("hand on")) hand_on(4);
    if (IS("hand on NaN")) hand_on(-1);
    if (IS("threads") || IS("a thread sends NaN")) run_threads();
    if (IS("alone")) run_alone(4);
    if (IS("alone with NaN")) run_alone(-1);
    if (IS("what is not sent")) {  // half of it is bad, and stays where it is
        differentiate(ranks, -1);
        upload(ranks, ranks[0].gradient, 1, kCount / 2);
        TRY(ncclGroupStart());
        EACH(one)
        TRY(ncclAllReduce(F32(one->gradient), F32(one->all), kCount / 2, ncclFloat, ncclSum, one->communicator,
                          ON(one)));
        TRY(ncclGroupEnd());
        EACH(one) show(one, one->all, kCount / 2);
    }
    if (IS("integers")) {
        EACH(one) differentiate(one, 4);
        TRY(ncclGroupStart());
        EACH(one)
        TRY(ncclAllReduce(F32(one->gradient), F32(one->weight), kCount, ncclInt32, ncclMax, one->communicator,
                          ON(one)));
        TRY(ncclGroupEnd());
        EACH(one) show(one, one->weight, kCount);
    }
    if (IS("many in a group")) {
        TRY(ncclGroupStart());
        for (int i = 0; i < 1100; i++)
            EACH(one) TRY(ncclBcast(F32(one->gradient), kCount, ncclFloat, 0, one->communicator, ON(one)));
        TRY(ncclGroupEnd());
        EACH(one) show(one, one->gradient, kCount);
    }
}

int main(int argc, char** argv) {
    const int devices[kRanks] = {0, 1};
    ncclComm_t communicators[kRanks];
    if (argc != 2) return 2;
    the_way = argv[1];
    set_devices(kRanks);
    TRY(cuInit(0));
    EACH(one) {
        one->rank = (int)(one - ranks);
        begin(one, one->rank);
    }
    TRY(ncclCommInitAll(communicators, kRanks, devices));
    EACH(one) one->communicator = communicators[one->rank];
    TRY(cuCtxSetCurrent(ranks[0].context));
    run();
    return 0;
}
