// A CUDA program without torch that filters signals by cuFFT, on the fakes: ways to use it, of which the first argument
// names one.
#include <cuda.h>
#include <cufftXt.h>
#include <dlfcn.h>
#include <math.h>
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
#define ARRAY(i) (*(float**)arguments[i])
#define COUNT(i) (*(int*)arguments[i])
#define KERNEL(name, ...)                        \
    const int name##_sizes[] = {__VA_ARGS__, 0}; \
    void name(void** arguments)

enum { kPoints = 16, kHalf = kPoints / 2 + 1, kBatch = 2 };

KERNEL(_Z6squareP6float2PKS_i, 8, 8, 4) {  // square(float2*, float2 const*, int): complex numbers
    for (int i = 0; i < COUNT(2); i++) {
        const float real = ARRAY(1)[2 * i], imaginary = ARRAY(1)[2 * i + 1];
        ARRAY(0)[2 * i] = real * real - imaginary * imaginary;
        ARRAY(0)[2 * i + 1] = 2 * real * imaginary;
    }
}
KERNEL(_Z4rootPfPKfi, 8, 8, 4) {  // root(float*, float const*, int)
    for (int i = 0; i < COUNT(2); i++) ARRAY(0)[i] = sqrtf(ARRAY(1)[i]);
}

static CUmodule module;
static CUstream stream;
static CUdeviceptr signal, spectrum, product, filtered, area;

static CUfunction kernel(const char* name) {
    CUfunction found;
    TRY(cuModuleGetFunction(&found, module, name));
    return found;
}
#define LAUNCH(name, ...) TRY(cuLaunchKernel(kernel(name), 1, 1, 1, 1, 1, 1, 0, stream, (void*[]){__VA_ARGS__}, 0))

static void upload(CUdeviceptr to, float value, int count) {
    float* values = (float*)malloc(sizeof(float) * (size_t)count);
    for (int i = 0; i < count; i++) values[i] = value;
    TRY(cuMemcpyHtoDAsync(to, values, sizeof(float) * (size_t)count, stream));
    TRY(cuStreamSynchronize(stream));
    free(values);
}
static CUdeviceptr floats(int count, float value) {
    CUdeviceptr made;
    TRY(cuMemAlloc(&made, sizeof(float) * (size_t)count));
    upload(made, value, count);
    return made;
}
static void show(CUdeviceptr from, int count) {
    float values[256];
    TRY(cuMemcpyDtoHAsync(values, from, sizeof(float) * (size_t)count, stream));
    TRY(cuStreamSynchronize(stream));
    printf("%g %g\n", fabs(rint(values[0])), fabs(rint(values[count - 1])));
    fflush(stdout);
}

/// Convolves signals with themselves, `value` everywhere.
static void convolve(float value) {
    cufftHandle there, back;
    int count = kBatch * kHalf;
    TRY(cufftPlan1d(&there, kPoints, CUFFT_R2C, kBatch));
    TRY(cufftPlan1d(&back, kPoints, CUFFT_C2R, kBatch));
    TRY(cufftSetStream(there, (cudaStream_t)stream));
    TRY(cufftSetStream(back, (cudaStream_t)stream));
    upload(signal, value, kBatch * kPoints);
    TRY(cufftExecR2C(there, (cufftReal*)signal, (cufftComplex*)spectrum));
    LAUNCH("_Z6squareP6float2PKS_i", (void*)&product, (void*)&spectrum, &count);  // of spectra
    TRY(cufftExecC2R(back, (cufftComplex*)product, (cufftReal*)filtered));
    show(filtered, kBatch * kPoints);
    TRY(cufftDestroy(there));
    TRY(cufftDestroy(back));
}

/// There and back in one place, where real numbers have room for complex ones.
static void go_in_place(float value) {
    int n[] = {kPoints};
    cufftHandle there, back;
    size_t bytes;
    TRY(cufftCreate(&there));
    TRY(cufftSetStream(there, (cudaStream_t)stream));
    TRY(cufftMakePlan1d(there, kPoints, CUFFT_R2C, 1, &bytes));
    TRY(cufftPlanMany(&back, 1, n, 0, 1, 0, 0, 1, 0, CUFFT_C2R, 1));
    TRY(cufftSetStream(back, (cudaStream_t)stream));
    upload(signal, value, kPoints);
    TRY(cufftExecR2C(there, (cufftReal*)signal, (cufftComplex*)signal));  // in place
    TRY(cufftExecC2R(back, (cufftComplex*)signal, (cufftReal*)signal));
    show(signal, kPoints);
}

/// Columns of a matrix: what lies between them is no number of theirs.
static void transform_columns(float value) {
    int n[] = {kPoints / 2}, embed[] = {kPoints / 2};
    cufftHandle plan;
    TRY(cufftPlanMany(&plan, 1, n, embed, 4, 1, embed, 4, 1, CUFFT_C2C, 2));
    TRY(cufftSetStream(plan, (cudaStream_t)stream));
    const CUdeviceptr matrix = floats(2 * 4 * kPoints / 2, NAN), result = floats(2 * 4 * kPoints / 2, NAN);
    for (int row = 0; row < kPoints / 2; row++) upload(matrix + (CUdeviceptr)row * 8 * sizeof(float), value, 4);
    TRY(cufftExecC2C(plan, (cufftComplex*)matrix, (cufftComplex*)result, CUFFT_FORWARD));  // of columns
    show(result, 4);
}

static void transform(float value) {
    cufftHandle plan;
    TRY(cufftPlan1d(&plan, kPoints, CUFFT_C2C, 1));
    TRY(cufftSetStream(plan, (cudaStream_t)stream));
    TRY(cufftSetWorkArea(plan, (void*)area));
    upload(spectrum, value, 2 * kPoints);
    TRY(cufftExecC2C(plan, (cufftComplex*)spectrum, (cufftComplex*)filtered, CUFFT_FORWARD));  // of a spectrum
    show(filtered, 2 * kPoints);
}

static void transform_by_types(float value) {
    long long n[] = {kPoints};
    size_t bytes;
    cufftHandle plan;
    TRY(cufftCreate(&plan));
    TRY(cufftXtMakePlanMany(plan, 1, n, 0, 1, 0, CUDA_C_32F, 0, 1, 0, CUDA_C_32F, 1, &bytes, CUDA_C_32F));
    TRY(cufftSetStream(plan, (cudaStream_t)stream));
    upload(spectrum, value, 2 * kPoints);
    TRY(cufftXtExec(plan, (void*)spectrum, (void*)filtered, CUFFT_FORWARD));  // by types
    show(filtered, 2 * kPoints);
}

static int run(const char* way) {
#define IS(name) (strcmp(way, name) == 0)
    int count = kPoints;
    if (IS("convolve")) convolve(2);
    if (IS("convolve what is large")) convolve(1e19f);
    if (IS("transform")) transform(1);
    if (IS("transform what is large")) transform(1e38f);
    if (IS("in place")) go_in_place(1);
    if (IS("in place what is large")) go_in_place(1e38f);
    if (IS("columns")) transform_columns(1);
    if (IS("types of both sides")) transform_by_types(1);
    if (IS("types of both sides, large")) transform_by_types(1e38f);
    if (IS("columns that are large")) transform_columns(1e38f);
    if (IS("missing values")) transform(NAN);
    if (IS("what a kernel made")) {
        cufftHandle plan;
        TRY(cufftPlan1d(&plan, kPoints, CUFFT_R2C, 1));
        TRY(cufftSetStream(plan, (cudaStream_t)stream));
        upload(filtered, -1, kPoints);
        LAUNCH("_Z4rootPfPKfi", (void*)&signal, (void*)&filtered, &count);  // a root
        TRY(cufftExecR2C(plan, (cufftReal*)signal, (cufftComplex*)spectrum));
        show(spectrum, 2 * kHalf);
    }
    if (IS("a plan that was not seen")) {
        __typeof__(cufftPlan1d)* const make = (__typeof__(cufftPlan1d)*)dlsym(RTLD_DEFAULT, "cufftPlan1d");
        cufftHandle plan;
        TRY(make(&plan, kPoints, CUFFT_C2C, 1));
        LAUNCH("_Z4rootPfPKfi", (void*)&filtered, (void*)&signal, &count);
        TRY(cufftExecC2C(plan, (cufftComplex*)signal, (cufftComplex*)spectrum, CUFFT_FORWARD));
        show(filtered, kPoints);
    }
    if (IS("a refused call")) {
        transform(1);
        printf("%d\n", (int)cufftExecC2C(1000, (cufftComplex*)signal, (cufftComplex*)spectrum, CUFFT_FORWARD));
    }
    return 0;
}

int main(int argc, char** argv) {
    CUcontext context;
    if (argc != 2) return 2;
    TRY(cuInit(0));
    TRY(cuDevicePrimaryCtxRetain(&context, 0));
    TRY(cuCtxSetCurrent(context));
    TRY(cuModuleLoadData(&module, "host functions"));
    TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    signal = floats(2 * kBatch * kPoints, 1);
    spectrum = floats(2 * kBatch * kPoints, 1);
    product = floats(2 * kBatch * kPoints, 1);
    filtered = floats(2 * kBatch * kPoints, 1);
    area = floats(kPoints, 0);
    return run(argv[1]);
}
