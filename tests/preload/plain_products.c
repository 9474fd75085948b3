// A CUDA program without torch that multiplies matrices by cuBLAS, on the fakes: ways to use it, of which the first
// argument names one.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRY(call)                              \
    do {                                       \
        const int error_ = (int)(call);        \
        if (error_) {                          \
            printf("%s: %d\n", #call, error_); \
            exit(3);                           \
        }                                      \
    } while (0)
#define ARRAY(i) (*(float**)arguments[i])
#define NUMBER(i) (*(float*)arguments[i])
#define COUNT(i) (*(int*)arguments[i])
#define KERNEL(name, ...)                        \
    const int name##_sizes[] = {__VA_ARGS__, 0}; \
    void name(void** arguments)

enum { kRows = 8, kInner = 16, kColumns = 4 };

KERNEL(_Z6squarePfPKfi, 8, 8, 4) {  // square(float*, float const*, int)
    for (int i = 0; i < COUNT(2); i++) ARRAY(0)[i] = ARRAY(1)[i] * ARRAY(1)[i];
}
KERNEL(_Z5errorPfPKfS1_i, 8, 8, 8, 4) {  // error(float*, float const*, float const*, int)
    for (int i = 0; i < COUNT(3); i++) ARRAY(0)[i] = ARRAY(1)[i] - ARRAY(2)[i];
}
KERNEL(_Z6updatePfPKffi, 8, 8, 4, 4) {  // update(float*, float const*, float, int)
    for (int i = 0; i < COUNT(3); i++) ARRAY(0)[i] -= NUMBER(2) * ARRAY(1)[i];
}

static CUmodule module;
static cublasHandle_t blas;
static CUdeviceptr a, b, c;
static const float one = 1, zero = 0;

/// In a program at a fixed address this is an entry of its own.
static __typeof__(cublasSgemm)* const sgemm = cublasSgemm;

static CUfunction kernel(const char* name) {
    CUfunction found;
    TRY(cuModuleGetFunction(&found, module, name));
    return found;
}
#define LAUNCH(name, ...) TRY(cuLaunchKernel(kernel(name), 1, 1, 1, 1, 1, 1, 0, 0, (void*[]){__VA_ARGS__}, 0))

static void upload(CUdeviceptr to, float value, int count) {
    float* values = (float*)malloc(sizeof(float) * (size_t)count);
    for (int i = 0; i < count; i++) values[i] = value;
    TRY(cuMemcpyHtoDAsync(to, values, sizeof(float) * (size_t)count, 0));
    TRY(cuCtxSynchronize());
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
    TRY(cuMemcpyDtoHAsync(values, from, sizeof(float) * (size_t)count, 0));
    TRY(cuCtxSynchronize());
    printf("%g %g\n", fabsf(values[0]), fabsf(values[count - 1]));
    fflush(stdout);
}

/// c = alpha a b + beta c, of matrices of one number each
static void multiply(float first, float second, float beta) {
    upload(a, first, kRows * kInner);
    upload(b, second, kInner * kColumns);
    TRY(sgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, kRows, kColumns, kInner, &one, (float*)a, kRows, (float*)b, kInner, &beta,
              (float*)c, kRows));
}

/// The rows of c lie further apart than there are, and what lies between is nobody's.
static void multiply_into_a_part(float first) {
    const CUdeviceptr wide = floats(2 * kRows * kColumns, NAN);
    upload(a, first, kRows * kInner);
    upload(b, 2, kInner * kColumns);
    TRY(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, kRows, kColumns, kInner, &one, (float*)a, kRows, (float*)b, kInner,
                    &zero, (float*)wide, 2 * kRows));
    show(wide, kRows);
}

/// `bits`: a float16's
static void multiply_halves(uint16_t bits) {
    uint16_t values[kRows * kInner];
    CUdeviceptr halves, result;
    for (int i = 0; i < kRows * kInner; i++) values[i] = bits;
    TRY(cuMemAlloc(&halves, sizeof values));
    TRY(cuMemAlloc(&result, sizeof(uint16_t) * kRows * kRows));
    TRY(cuMemcpyHtoDAsync(halves, values, sizeof values, 0));
    TRY(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_T, kRows, kRows, kInner, &one, (void*)halves, CUDA_R_16F, kRows,
                     (void*)halves, CUDA_R_16F, kRows, &zero, (void*)result, CUDA_R_16F, kRows, CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT));
    TRY(cuMemcpyDtoHAsync(values, result, sizeof(uint16_t) * kRows * kRows, 0));
    TRY(cuCtxSynchronize());
    printf("%x\n", values[0]);
}

/// Two products at once; the second one's factors are `value`.
static void multiply_batch(float value) {
    const CUdeviceptr many = floats(2 * kRows * kRows, 1), results = floats(2 * kRows * kRows, 0);
    upload(many + sizeof(float) * kRows * kRows, value, kRows * kRows);
    TRY(cublasSgemmStridedBatched(blas, CUBLAS_OP_N, CUBLAS_OP_N, kRows, kRows, kRows, &one, (float*)many, kRows,
                                  kRows * kRows, (float*)many, kRows, kRows * kRows, &zero, (float*)results, kRows,
                                  kRows * kRows, 2));
    show(results, 2 * kRows * kRows);
}

/// d = a b + bias by cuBLASLt.
static void multiply_by_lt(float value, float bias) {
    cublasLtHandle_t lt;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t of_a, of_b, of_c;
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const CUdeviceptr biases = floats(kRows, bias);
    upload(a, value, kRows * kInner);
    upload(b, value, kInner * kColumns);
    TRY(cublasLtCreate(&lt));
    TRY(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    TRY(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    TRY(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &biases, sizeof biases));
    TRY(cublasLtMatrixLayoutCreate(&of_a, CUDA_R_32F, kRows, kInner, kRows));
    TRY(cublasLtMatrixLayoutCreate(&of_b, CUDA_R_32F, kInner, kColumns, kInner));
    TRY(cublasLtMatrixLayoutCreate(&of_c, CUDA_R_32F, kRows, kColumns, kRows));
    TRY(cublasLtMatmul(lt, product, &one, (void*)a, of_a, (void*)b, of_b, &zero, (void*)c, of_c, (void*)c, of_c, 0, 0,
                       0, 0));
    show(c, kRows * kColumns);
}

/// A layer of a square activation, fitted to targets by gradient descent: the learning rate decides.
static void train(float rate) {
    const CUdeviceptr w = floats(kRows * kInner, 0.1f), x = floats(kInner * kColumns, 1),
                      y = floats(kRows * kColumns, 0);
    const CUdeviceptr hidden = floats(kRows * kColumns, 0), target = floats(kRows * kColumns, 1);
    const CUdeviceptr error = floats(kRows * kColumns, 0), gradient = floats(kRows * kInner, 0);
    int outputs = kRows * kColumns, weights = kRows * kInner;
    for (int step = 0; step < 30; step++) {
        TRY(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, kRows, kColumns, kInner, &one, (float*)w, kRows, (float*)x,
                        kInner, &zero, (float*)hidden, kRows));
        LAUNCH("_Z6squarePfPKfi", (void*)&y, (void*)&hidden, &outputs);
        LAUNCH("_Z5errorPfPKfS1_i", (void*)&error, (void*)&y, (void*)&target, &outputs);
        TRY(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, kRows, kInner, kColumns, &one, (float*)error, kRows, (float*)x,
                        kInner, &zero, (float*)gradient, kRows));
        LAUNCH("_Z6updatePfPKffi", (void*)&w, (void*)&gradient, &rate, &weights);
    }
    show(w, weights);
}

static int run(const char* way) {
#define IS(name) (strcmp(way, name) == 0)
    if (IS("healthy")) multiply(1e10f, 1e10f, 0);
    if (IS("overflow")) multiply(1e20f, 1e20f, 0);
    if (IS("sums below zero")) multiply(1e20f, -1e20f, 1);
    if (IS("missing values")) multiply(NAN, 1, 0);
    if (IS("what is not read")) upload(c, NAN, kRows * kColumns), multiply(1, 1, 0);
    if (IS("over what is not read")) upload(c, NAN, kRows * kColumns), multiply(1e20f, 1e20f, 0);
    if (IS("a profiler comes")) {
        TRY(dlopen("libcupti.so.13", RTLD_NOW) == 0);
        multiply(1e20f, 1e20f, 0);
    }
    if (IS("fork")) {
        multiply(1, 1, 0);
        const pid_t child = fork();
        if (child == 0) _exit(0);
        int status = 1;
        waitpid(child, &status, 0);
        multiply(1e20f, 1e20f, status);
    }
    if (IS("nothing")) {
        multiply(1, 1, 0);
        TRY(sgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 0, kColumns, kInner, &one, (float*)a, kRows, (float*)b, kInner, &zero,
                  (float*)c, kRows));
    }
    if (IS("what is added to")) upload(c, NAN, kRows * kColumns), multiply(1, 1, 1);
    if (IS("in a graph")) {
        CUstream stream;
        CUgraph graph;
        TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        multiply(1, 1, 0);
        TRY(cublasSetStream(blas, (cudaStream_t)stream));
        TRY(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        TRY(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, kRows, kColumns, kInner, &one, (float*)a, kRows, (float*)b,
                        kInner, &zero, (float*)c, kRows));
        TRY(cuStreamEndCapture(stream, &graph));
    }
    if (IS("factor of the device")) {
        const CUdeviceptr factors = floats(2, 1);
        TRY(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE));
        TRY(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, kRows, kColumns, kInner, (float*)factors, (float*)a, kRows,
                        (float*)b, kInner, (float*)factors, (float*)c, kRows));
    }
    if (IS("a bad factor")) {
        const float bad = NAN;
        TRY(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, kRows, kColumns, kInner, &bad, (float*)a, kRows, (float*)b,
                        kInner, &zero, (float*)c, kRows));
    }
    if (IS("a refused call")) multiply(1, 1, 0);
    if (IS("a refused call"))
        printf("%d\n", (int)cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, -1, kColumns, kInner, &one, (float*)a, kRows,
                                        (float*)b, kInner, &zero, (float*)c, kRows));
    show(c, kRows * kColumns);
    if (IS("part")) multiply_into_a_part(1);
    if (IS("part overflows")) multiply_into_a_part(3e38f);
    if (IS("halves")) multiply_halves(0x4900);           // 10
    if (IS("halves overflow")) multiply_halves(0x5640);  // 100
    if (IS("batch")) multiply_batch(2);
    if (IS("batch overflows")) multiply_batch(1e30f);
    if (IS("lt")) multiply_by_lt(1, 1);
    if (IS("lt overflows")) multiply_by_lt(1e30f, 1);
    if (IS("lt with a missing bias")) multiply_by_lt(1, NAN);
    if (IS("train")) train(1e-3f);
    if (IS("train too fast")) train(10);
    return 0;
}

int main(int argc, char** argv) {
    CUcontext context;
    (void)argc;
    TRY(cuInit(0));
    TRY(cuDevicePrimaryCtxRetain(&context, 0));
    TRY(cuCtxSetCurrent(context));
    TRY(cuModuleLoadData(&module, "host functions"));
    TRY(cublasCreate(&blas));
    a = floats(kRows * kInner, 1);
    b = floats(kInner * kColumns, 1);
    c = floats(kRows * kColumns, 0);
    return run(argv[1]);
}
