// Square roots of multiples of the first argument. Its kernels are in another file, and one is launched by a pointer to
// it, so that the compiler cannot inline them where they are launched: with 1 all is well, with 1e25 the square of the
// first guess is too large for float32, with 1e37 some multiples are.
#include "roots_kernels.h"

#include <vector>

#include "check.h"

namespace {

constexpr int kCount = 64, kThreads = 32, kSteps = 12;

template <typename Kernel, typename... Arguments>
__attribute__((noinline)) void launch(Kernel* kernel, Arguments... arguments) {
    kernel<<<kCount / kThreads, kThreads>>>(arguments...);  // by a pointer
    CHECK(cudaGetLastError());
}

__attribute__((noinline)) void improve(float* guesses, const float* of) {
    roots::improve<<<kCount / kThreads, kThreads>>>(guesses, of, kCount);  // BUG
    CHECK(cudaGetLastError());
}

}  // namespace

int main(int argc, char** argv) {
    const float factor = argc > 1 ? std::strtof(argv[1], nullptr) : 1.0f;
    std::vector<float> values(kCount);
    for (int i = 0; i < kCount; ++i) values[i] = static_cast<float>(i + 1);
    float *of = nullptr, *guesses = nullptr;
    CHECK(cudaMalloc(&of, kCount * sizeof(float)));
    CHECK(cudaMemcpy(of, values.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMalloc(&guesses, kCount * sizeof(float)));
    launch(roots::scale, of, factor, kCount);
    CHECK(cudaMemcpy(guesses, of, kCount * sizeof(float), cudaMemcpyDeviceToDevice));
    for (int step = 0; step < kSteps; ++step) improve(guesses, of);
    CHECK(cudaMemcpy(values.data(), guesses, kCount * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < kCount; i += 9) std::printf("%d %.9g\n", i + 1, values[i]);
    for (float* memory : {of, guesses}) CHECK(cudaFree(memory));
    return 0;
}
