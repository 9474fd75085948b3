// Heat that spreads in a plate whose cells have a heat capacity each: a stencil of five points in float64, by tiles of
// shared memory. The first argument is the capacity of the cell in the middle: with 0.5 heat spreads, with 0 the kernel
// divides by zero there.
#include <cmath>
#include <utility>
#include <vector>

#include "check.h"

namespace {

constexpr int kColumns = 64, kRows = 32, kSteps = 25;
constexpr int kTileX = 16, kTileY = 8;

}  // namespace

namespace heat {

/// The edges stay as they are.
template <typename Real>
__global__ void diffuse(Real* to, const Real* from, const Real* capacities, Real rate, int columns, int rows) {
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
    const Real flow = tile[y][x + 1] + tile[y][x - 1] + tile[y + 1][x] + tile[y - 1][x] - 4 * tile[y][x];
    to[at] = tile[y][x] + rate * flow / capacities[at];
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
    std::vector<double> capacities(kColumns * kRows, 1.0), values(kColumns * kRows);
    capacities[kRows / 2 * kColumns + kColumns / 2] = argc > 1 ? std::strtod(argv[1], nullptr) : 0.5;
    for (int row = 0; row < kRows; ++row) {
        for (int column = 0; column < kColumns; ++column)
            values[row * kColumns + column] = std::sin(0.1 * column) * std::cos(0.2 * row);
    }
    double *from = on_device(values), *to = on_device(values), *of_cells = on_device(capacities);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    const dim3 block(kTileX, kTileY), grid(kColumns / kTileX, kRows / kTileY);
    for (int step = 0; step < kSteps; ++step) {
        heat::diffuse<<<grid, block, 0, stream>>>(to, from, of_cells, 0.05, kColumns, kRows);  // BUG
        CHECK(cudaGetLastError());
        std::swap(from, to);
    }
    CHECK(cudaMemcpyAsync(values.data(), from, values.size() * sizeof(double), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamDestroy(stream));
    for (int column = 0; column < kColumns; column += 8)
        std::printf("%d %.17g\n", column, values[kRows / 2 * kColumns + column]);
    for (double* memory : {from, to, of_cells}) CHECK(cudaFree(memory));
    return 0;
}
