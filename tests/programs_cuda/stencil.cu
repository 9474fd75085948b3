// Diffusion on a rectangle whose columns may lie closer together in places: a stencil of five points in float64, in
// tiles of shared memory. The first argument is the distance between two columns in the middle: with 0.5 heat spreads,
// with 0 two columns lie at the same place and the kernel divides by zero.
#include <cmath>
#include <utility>
#include <vector>

#include "check.h"

namespace {

constexpr int kColumns = 64, kRows = 32, kSteps = 25;
constexpr int kTileX = 16, kTileY = 8;

}  // namespace

namespace heat {

/// `gaps[i]` lies between columns i and i + 1; rows are 1 apart. The edges stay as they are.
template <typename Real>
__global__ void diffuse(Real* to, const Real* from, const Real* gaps, Real rate, int columns, int rows) {
    __shared__ Real tile[kTileY + 2][kTileX + 2];
    const int column = blockIdx.x * kTileX + threadIdx.x, row = blockIdx.y * kTileY + threadIdx.y;
    const int x = threadIdx.x + 1, y = threadIdx.y + 1, at = row * columns + column;
    tile[y][x] = from[at];
    if (threadIdx.x == 0 && column > 0) tile[y][0] = from[at - 1];
    if (threadIdx.x == kTileX - 1 && column < columns - 1) tile[y][kTileX + 1] = from[at + 1];
    if (threadIdx.y == 0 && row > 0) tile[0][x] = from[at - columns];
    if (threadIdx.y == kTileY - 1 && row < rows - 1) tile[kTileY + 1][x] = from[at + columns];
    __syncthreads();
    if (column == 0 || column == columns - 1 || row == 0 || row == rows - 1) {
        to[at] = tile[y][x];
        return;
    }
    const Real left = gaps[column - 1], right = gaps[column];
    const Real across = ((tile[y][x + 1] - tile[y][x]) / right - (tile[y][x] - tile[y][x - 1]) / left) * 2 /
                        (left + right);
    const Real along = tile[y + 1][x] - 2 * tile[y][x] + tile[y - 1][x];
    to[at] = tile[y][x] + rate * (across + along);
}

}  // namespace heat

namespace {

template <typename Real>
Real* on_device(const std::vector<Real>& values) {
    Real* memory = nullptr;
    CHECK(cudaMalloc(&memory, values.size() * sizeof(Real)));
    CHECK(cudaMemcpy(memory, values.data(), values.size() * sizeof(Real), cudaMemcpyHostToDevice));
    return memory;
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<double> gaps(kColumns, 1.0), values(kColumns * kRows);
    gaps[kColumns / 2] = argc > 1 ? std::strtod(argv[1], nullptr) : 0.5;
    for (int row = 0; row < kRows; ++row) {
        for (int column = 0; column < kColumns; ++column)
            values[row * kColumns + column] = std::sin(0.1 * column) * std::cos(0.2 * row);
    }
    double *from = on_device(values), *to = on_device(values), *distances = on_device(gaps);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    const dim3 block(kTileX, kTileY), grid(kColumns / kTileX, kRows / kTileY);
    for (int step = 0; step < kSteps; ++step) {
        heat::diffuse<<<grid, block, 0, stream>>>(to, from, distances, 0.05, kColumns, kRows);
        CHECK(cudaGetLastError());
        std::swap(from, to);
    }
    CHECK(cudaMemcpyAsync(values.data(), from, values.size() * sizeof(double), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamDestroy(stream));
    for (int column = 0; column < kColumns; column += 7)
        std::printf("%d %.17g\n", column, values[kRows / 2 * kColumns + column]);
    for (double* memory : {from, to, distances}) CHECK(cudaFree(memory));
    return 0;
}
