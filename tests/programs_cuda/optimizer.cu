// A linear model fitted by Adam, whose kernel has a C name and takes one struct: neither says which numbers it writes.
// The last input is always zero, and so are the gradients of its weight. The first argument is what is added to the
// root that Adam divides by: with 1e-8 all is well, with 0 the first update of that weight is 0 / 0.
#include <cmath>
#include <cstdint>
#include <vector>

#include "check.h"

namespace {

constexpr int kRows = 64, kColumns = 8, kSteps = 30;

}  // namespace

struct Moments {
    float *means, *squares;
};

struct Adam {
    int count;
    float* weights;
    const float* gradients;
    Moments moments;
    float rate, mean_correction, square_correction, eps;
};

extern "C" __global__ void adam_step(Adam adam) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= adam.count) return;
    const float gradient = adam.gradients[i];
    const float mean = adam.moments.means[i] = 0.9f * adam.moments.means[i] + 0.1f * gradient;
    const float square = adam.moments.squares[i] = 0.999f * adam.moments.squares[i] + 0.001f * gradient * gradient;
    const float root = sqrtf(square / adam.square_correction) + adam.eps;
    adam.weights[i] -= adam.rate * (mean / adam.mean_correction) / root;
}

namespace linear {

/// Of the mean of squared errors, by each weight.
__global__ void gradients(const float* inputs, const float* targets, const float* weights, float* results) {
    const int of = threadIdx.x;
    float sum = 0;
    for (int row = 0; row < kRows; ++row) {
        float error = -targets[row];
        for (int column = 0; column < kColumns; ++column) error += inputs[row * kColumns + column] * weights[column];
        sum += error * inputs[row * kColumns + of];
    }
    results[of] = 2 * sum / kRows;
}

}  // namespace linear

namespace {

float* on_device(const std::vector<float>& values) {
    float* memory = nullptr;
    CHECK(cudaMalloc(&memory, values.size() * sizeof(float)));
    CHECK(cudaMemcpy(memory, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
    return memory;
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<float> inputs(kRows * kColumns), targets(kRows), weights(kColumns, 0.0f);
    uint32_t state = 5;
    for (int row = 0; row < kRows; ++row) {
        for (int column = 0; column < kColumns - 1; ++column) {
            state = state * 1664525u + 1013904223u;
            inputs[row * kColumns + column] = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
        }
        targets[row] = inputs[row * kColumns] - 2 * inputs[row * kColumns + 1];
    }
    float *of_inputs = on_device(inputs), *of_targets = on_device(targets), *gradients = on_device(weights);
    Adam adam{kColumns, on_device(weights), gradients, {on_device(weights), on_device(weights)}};
    adam.rate = 0.1f;
    adam.eps = argc > 1 ? std::strtof(argv[1], nullptr) : 1e-8f;
    for (int step = 1; step <= kSteps; ++step) {
        linear::gradients<<<1, kColumns>>>(of_inputs, of_targets, adam.weights, gradients);
        adam.mean_correction = 1.0f - std::pow(0.9f, static_cast<float>(step));
        adam.square_correction = 1.0f - std::pow(0.999f, static_cast<float>(step));
        adam_step<<<1, kColumns>>>(adam);  // BUG
        CHECK(cudaGetLastError());
    }
    CHECK(cudaMemcpy(weights.data(), adam.weights, kColumns * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < kColumns; ++i) std::printf("%d %.9g\n", i, weights[i]);
    for (float* memory : {of_inputs, of_targets, gradients, adam.weights, adam.moments.means, adam.moments.squares})
        CHECK(cudaFree(memory));
    return 0;
}
