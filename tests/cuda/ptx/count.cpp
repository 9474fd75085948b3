// Prints how many PTX instructions all threads execute for 16 bytes of a batch, by the size of the chunks it is cut
// into: float32, all values finite, a grid as on a GPU of 132 SMs; and for 16 bytes of a look. What runs is what nvcc
// made for sm_90, before ptxas.
//
// usage: numsan_ptx_count
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "cuda/batch_filler.h"
#include "cuda/kernel/range_walk.cuh"
#include "tests/cuda/compare.h"
#include "tests/cuda/patterns.h"
#include "tests/cuda/ptx/scan_grid.h"

extern "C" uint64_t counted_executed[];  ///< by the lines of the PTX
extern "C" const size_t counted_lines;

namespace numsan::ptx {
namespace counted {
extern const std::vector<Kernel> kernels;
}
namespace {

using namespace gpu;

constexpr uint32_t kSms = 132;

const Kernel& kernel_of(const char* name) {
    return *std::find_if(counted::kernels.begin(), counted::kernels.end(),
                         [&](const Kernel& kernel) { return std::strcmp(kernel.name, name) == 0; });
}

struct Count {
    uint32_t chunk_log2, chunks, blocks;
    double each;  ///< instructions for 16 bytes
};

/// `chunk_log2` 0: as the scanner chooses it.
Count count(const std::vector<std::unique_ptr<Lanes>>& outputs, uint32_t chunk_log2) {
    Words words;
    BatchFiller filler;
    filler.begin(words.header());
    uint64_t bytes = 0;
    for (const auto& lanes : outputs) {
        filler.add(Shaped(lanes->data(), DType::Float32, lanes->count()).view, 0, 0);
        bytes += uint64_t(lanes->count()) * 4;
    }
    filler.close();
    ScanTableSmall table = filler.small();
    if (chunk_log2 != 0) {
        table.header.chunk_log2 = chunk_log2;
        table.header.chunks = 0;
        for (uint32_t i = 0; i < table.header.outputs; ++i) {
            table.items[i].first_chunk = table.header.chunks;
            table.header.chunks += chunks_of(loads_of(table.items[i], 4), chunk_log2);
        }
    }
    const uint32_t blocks = grid_blocks(table.header.chunks, kSms);
    std::fill_n(counted_executed, counted_lines, uint64_t(0));
    const std::string fault =
        run({kernel_of(gpu::kScanSmallName), &table, blocks, kBlockThreads, 1, 0, memory_of(table)});
    if (!fault.empty()) throw std::runtime_error(fault);
    const uint64_t executed = std::accumulate(counted_executed, counted_executed + counted_lines, uint64_t(0));
    return {table.header.chunk_log2, table.header.chunks, blocks, double(executed) * 16 / double(bytes)};
}

/// What the look executes after a scan of `tensor`, one of whose values is NaN, and blocks of its grid.
Count count_look(Lanes& tensor, DType dtype) {
    Words words;
    BatchFiller filler;
    filler.begin(words.header());
    filler.add(Shaped(tensor.data(), dtype, tensor.count()).view, 0, 0);
    filler.close(0);
    ScanHeader& header = filler.header();
    header.scan_blocks = grid_blocks(header.chunks, kSms);
    const uint32_t blocks = grid_blocks(header.look_chunks, kSms, kLookBlocksPerSm);
    const ScanTableSmall& table = filler.small();
    const auto run_kernel = [&](const char* name, uint32_t grid) {
        const std::string fault = run({kernel_of(name), &table, grid, kBlockThreads, 1, 0, memory_of(table)});
        if (!fault.empty()) throw std::runtime_error(fault);
    };
    run_kernel(kScanSmallName, header.scan_blocks);
    std::fill_n(counted_executed, counted_lines, uint64_t(0));
    run_kernel(kLookSmallName, blocks);
    const uint64_t executed = std::accumulate(counted_executed, counted_executed + counted_lines, uint64_t(0));
    const double bytes = double(tensor.count()) * info(dtype).lane_bytes;
    return {header.chunk_log2, header.chunks, blocks, double(executed) * 16 / bytes};
}

}  // namespace
}  // namespace numsan::ptx

int main() {
    using namespace numsan;
    std::printf("outputs, KiB each, KiB a chunk, chunks, blocks, instructions for 16 bytes\n");
    const int64_t batches[][2] = {{1, 1024},  {1, 4096}, {1, 8192}, {1, 16384},
                                  {1, 32768}, {32, 32},  {32, 256}, {32, 1024}};
    for (const auto& [outputs, kib] : batches) {
        std::vector<std::unique_ptr<gpu::Lanes>> all;
        for (int64_t i = 0; i < outputs; ++i) {
            all.push_back(std::make_unique<gpu::Lanes>(DType::Float32, kib * 256));
            all.back()->fill(gpu::one(info(DType::Float32)));
        }
        for (const uint32_t chunk_log2 : {9u, 10u, 11u, 12u, 0u}) {
            const ptx::Count count = ptx::count(all, chunk_log2);
            std::printf("%2d %6d %3u %5u %4u %7.2f%s\n", int(outputs), int(kib), 1u << count.chunk_log2 >> 6,
                        count.chunks, count.blocks, count.each, chunk_log2 == 0 ? "  as chosen" : "");
        }
    }
    std::printf("look after one NaN in 16 MiB, blocks, instructions for 16 bytes\n");
    for (const DType dtype : {DType::Float32, DType::BFloat16, DType::Float16, DType::Float8E4M3Fn}) {
        gpu::Lanes lanes(dtype, (16 << 20) / info(dtype).lane_bytes);
        lanes.fill(gpu::one(info(dtype)));
        lanes.set(lanes.count() / 3, gpu::nan_of(info(dtype)));
        const ptx::Count count = ptx::count_look(lanes, dtype);
        std::printf("%s %u %.2f\n", info(dtype).name, count.blocks, count.each);
    }
}
