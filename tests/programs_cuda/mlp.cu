// Trains a perceptron of one hidden layer on made-up data by gradient descent: cuBLAS multiplies, kernels do the rest.
// The first argument is the learning rate: with 1 it learns, with 10 the weights grow until float32 ends.
#include <cublas_v2.h>

#include <cstdint>
#include <vector>

#include "check.h"

namespace {

constexpr int kBatch = 64, kInputs = 8, kHidden = 32, kOutputs = 4, kSteps = 40;
constexpr int kThreads = 64;

void check(cublasStatus_t status, const char* call, int line) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    std::fprintf(stderr, "line %d: %s: %s\n", line, call, cublasGetStatusString(status));
    std::exit(3);
}

int blocks_for(int count) { return (count + kThreads - 1) / kThreads; }

}  // namespace

// Matrices have a column for each sample.

__global__ void add_bias(float* values, const float* bias, int rows, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] += bias[i % rows];
}

__global__ void add_bias_and_relu(float* values, const float* bias, int rows, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] = fmaxf(values[i] + bias[i % rows], 0.0f);
}

/// Of half of the mean square, by the outputs.
__global__ void error_gradient(float* gradient, const float* outputs, const float* targets, float scale, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) gradient[i] = (outputs[i] - targets[i]) * scale;
}

__global__ void relu_gradient(float* gradient, const float* values, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && !(values[i] > 0.0f)) gradient[i] = 0.0f;
}

/// A thread for each row.
__global__ void sum_columns(float* sums, const float* values, int rows, int columns) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int column = 0; column < columns; ++column) sum += values[column * rows + row];
    sums[row] = sum;
}

__global__ void descend(float* weights, const float* gradient, float rate, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) weights[i] -= rate * gradient[i];
}

namespace {

/// Numbers between -1 and 1, the same in every run.
class Numbers {
  public:
    float next() {
        state_ = state_ * 1664525u + 1013904223u;
        return static_cast<float>(state_ >> 8) / 8388608.0f - 1.0f;
    }

  private:
    uint32_t state_ = 1;
};

float* on_device(const std::vector<float>& values) {
    float* memory = nullptr;
    CHECK(cudaMalloc(&memory, values.size() * sizeof(float)));
    CHECK(cudaMemcpy(memory, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
    return memory;
}
float* on_device(int count) { return on_device(std::vector<float>(count, 0.0f)); }

float* weights_of(int rows, int columns, Numbers& numbers) {
    std::vector<float> values(rows * columns);
    for (float& value : values) value = numbers.next() / static_cast<float>(columns);
    return on_device(values);
}

/// Half of the mean square, on the host.
float loss_of(const float* error, float scale) {
    std::vector<float> values(kOutputs * kBatch);
    CHECK(cudaMemcpy(values.data(), error, values.size() * sizeof(float), cudaMemcpyDeviceToHost));
    double sum = 0;
    for (const float value : values) sum += static_cast<double>(value) * value;
    return static_cast<float>(sum / (2.0 * scale));
}

}  // namespace

int main(int argc, char** argv) {
    const float rate = argc > 1 ? std::strtof(argv[1], nullptr) : 1.0f;
    Numbers numbers;
    std::vector<float> samples(kInputs * kBatch), wanted(kOutputs * kBatch);
    for (float& value : samples) value = numbers.next();
    for (int i = 0; i < kOutputs * kBatch; ++i) {  // what is to be learnt: products of neighbours
        const float* sample = &samples[i / kOutputs * kInputs];
        wanted[i] = sample[i % kOutputs] * sample[i % kOutputs + 1];
    }
    float *x = on_device(samples), *targets = on_device(wanted);
    float *w1 = weights_of(kHidden, kInputs, numbers), *b1 = on_device(kHidden);
    float *w2 = weights_of(kOutputs, kHidden, numbers), *b2 = on_device(kOutputs);
    float *hidden = on_device(kHidden * kBatch), *outputs = on_device(kOutputs * kBatch);
    float *d_hidden = on_device(kHidden * kBatch), *d_outputs = on_device(kOutputs * kBatch);
    float *d_w1 = on_device(kHidden * kInputs), *d_b1 = on_device(kHidden);
    float *d_w2 = on_device(kOutputs * kHidden), *d_b2 = on_device(kOutputs);

    cublasHandle_t blas;
    CHECK(cublasCreate(&blas));
    const float one = 1.0f, none = 0.0f, scale = 1.0f / kBatch;
    for (int step = 0; step < kSteps; ++step) {
        // Forward.
        CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, kHidden, kBatch, kInputs, &one, w1, kHidden, x, kInputs,
                          &none, hidden, kHidden));
        add_bias_and_relu<<<blocks_for(kHidden * kBatch), kThreads>>>(hidden, b1, kHidden, kHidden * kBatch);
        CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, kOutputs, kBatch, kHidden, &one, w2, kOutputs, hidden,
                          kHidden, &none, outputs, kOutputs));
        add_bias<<<blocks_for(kOutputs * kBatch), kThreads>>>(outputs, b2, kOutputs, kOutputs * kBatch);
        error_gradient<<<blocks_for(kOutputs * kBatch), kThreads>>>(d_outputs, outputs, targets, scale,
                                                                    kOutputs * kBatch);
        // Backward.
        CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, kOutputs, kHidden, kBatch, &one, d_outputs, kOutputs,  // BUG
                          hidden, kHidden, &none, d_w2, kOutputs));
        sum_columns<<<blocks_for(kOutputs), kThreads>>>(d_b2, d_outputs, kOutputs, kBatch);
        CHECK(cublasSgemm(blas, CUBLAS_OP_T, CUBLAS_OP_N, kHidden, kBatch, kOutputs, &one, w2, kOutputs, d_outputs,
                          kOutputs, &none, d_hidden, kHidden));
        relu_gradient<<<blocks_for(kHidden * kBatch), kThreads>>>(d_hidden, hidden, kHidden * kBatch);
        CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, kHidden, kInputs, kBatch, &one, d_hidden, kHidden, x, kInputs,
                          &none, d_w1, kHidden));
        sum_columns<<<blocks_for(kHidden), kThreads>>>(d_b1, d_hidden, kHidden, kBatch);
        // The step.
        descend<<<blocks_for(kHidden * kInputs), kThreads>>>(w1, d_w1, rate, kHidden * kInputs);
        descend<<<blocks_for(kHidden), kThreads>>>(b1, d_b1, rate, kHidden);
        descend<<<blocks_for(kOutputs * kHidden), kThreads>>>(w2, d_w2, rate, kOutputs * kHidden);
        descend<<<blocks_for(kOutputs), kThreads>>>(b2, d_b2, rate, kOutputs);
        CHECK(cudaGetLastError());
        if (step % 5 == 4) std::printf("step %d loss %.9g\n", step + 1, loss_of(d_outputs, scale));
    }
    CHECK(cublasDestroy(blas));
    for (float* memory : {x, targets, w1, b1, w2, b2, hidden, outputs, d_hidden, d_outputs, d_w1, d_b1, d_w2, d_b2})
        CHECK(cudaFree(memory));
    return 0;
}
