// The host scanner against the read ceiling of the machine, measured alternately in the same run, and its cost on a
// tiny tensor.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "host/scan/cpu_scanner.h"
#include "host/scan/kernel_target.h"

namespace {

using numsan::DType;

// Reads everything and does as little with it as a loop can. Twice, as the scanner prefetches: the faster one is the
// ceiling.
template <bool kPrefetch>
NUMSAN_KERNEL_BODY uint64_t read_words(const uint64_t* p, int64_t words) {
    constexpr int kBlock = 32;
    uint64_t any[kBlock] = {};
    for (int64_t i = 0; i + kBlock <= words; i += kBlock) {
        if (kPrefetch) {
            for (int line = 0; line < 4; ++line) {
                const uintptr_t ahead = reinterpret_cast<uintptr_t>(p + i) + 2048 + 64 * line;
                __builtin_prefetch(reinterpret_cast<const void*>(ahead));
            }
        }
        NUMSAN_VECTOR_LOOP
        for (int j = 0; j < kBlock; ++j) any[j] |= p[i + j];
    }
    uint64_t result = 0;
    for (int j = 0; j < kBlock; ++j) result |= any[j];
    return result;
}
NUMSAN_KERNEL(uint64_t, read_plain, (const uint64_t* p, int64_t words), (p, words), read_words<false>)
NUMSAN_KERNEL(uint64_t, read_prefetched, (const uint64_t* p, int64_t words), (p, words), read_words<true>)

struct Tensor {
    int64_t size;
    int64_t stride = 1;
    numsan::TensorView view{};

    Tensor(void* data, DType type, int64_t bytes) : size(bytes / numsan::info(type).element_bytes()) {
        view.data = data;
        view.storage_bytes = bytes;
        view.numel = size;
        view.sizes = &size;
        view.strides = &stride;
        view.ndim = 1;
        view.dtype = type;
    }
    Tensor(const Tensor&) = delete;
};

// Patterns without a large exponent, so that every type sees finite values.
uint64_t* fill(int64_t bytes) {
    auto* p = static_cast<uint64_t*>(std::aligned_alloc(4096, static_cast<size_t>(bytes)));
    uint64_t s = 12345;
    for (int64_t i = 0; i < bytes / 8; ++i) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        p[i] = s & 0xbfbfbfbfbfbfbfbfu;
    }
    return p;
}

template <class F>
double seconds(F f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void large(benchmark::State& state, DType type) {
    const int64_t bytes = state.range(0) << 20;
    uint64_t* data = fill(bytes);
    Tensor tensor(data, type, bytes);
    const numsan::CpuScanner scanner;
    std::vector<double> plain, prefetched, scan;
    for (auto _ : state) {
        plain.push_back(seconds([&] { benchmark::DoNotOptimize(read_plain(data, bytes / 8)); }));
        prefetched.push_back(seconds([&] { benchmark::DoNotOptimize(read_prefetched(data, bytes / 8)); }));
        scan.push_back(seconds([&] { benchmark::DoNotOptimize(scanner.range(tensor.view)); }));
        state.SetIterationTime(scan.back());
    }
    std::free(data);
    const auto gigabytes = [&](double s) { return static_cast<double>(bytes) / s / 1e9; };
    const auto median = [](std::vector<double>& v) {
        std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
        return v[v.size() / 2];
    };
    const double p = median(plain), f = median(prefetched), s = median(scan);
    state.counters["plain_GBps"] = gigabytes(p);
    state.counters["prefetched_GBps"] = gigabytes(f);
    state.counters["scan_GBps"] = gigabytes(s);
    state.counters["ratio"] = std::min(p, f) / s;
}

void tiny(benchmark::State& state, DType type) {
    uint64_t* data = fill(4096);
    Tensor tensor(data, type, state.range(0));
    const numsan::CpuScanner scanner;
    const numsan::Scanner* through_seam = &scanner;
    benchmark::DoNotOptimize(through_seam);
    for (auto _ : state) benchmark::DoNotOptimize(through_seam->range(tensor.view));
    std::free(data);
}

void exact(benchmark::State& state, DType type) {
    const int64_t bytes = state.range(0) << 20;
    uint64_t* data = fill(bytes);
    Tensor tensor(data, type, bytes);
    const numsan::CpuScanner scanner;
    for (auto _ : state) benchmark::DoNotOptimize(scanner.health(tensor.view));
    state.SetBytesProcessed(state.iterations() * bytes);
    std::free(data);
}

void sizes(benchmark::internal::Benchmark* bench) {
    bench->Arg(64)->Arg(256)->UseManualTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(large, float32, DType::Float32)->Apply(sizes);
BENCHMARK_CAPTURE(large, float16, DType::Float16)->Apply(sizes);
BENCHMARK_CAPTURE(large, bfloat16, DType::BFloat16)->Apply(sizes);
BENCHMARK_CAPTURE(large, float8_e4m3fn, DType::Float8E4M3Fn)->Apply(sizes);
BENCHMARK_CAPTURE(large, float8_e4m3fnuz, DType::Float8E4M3Fnuz)->Apply(sizes);
BENCHMARK_CAPTURE(large, float64, DType::Float64)->Apply(sizes);
BENCHMARK_CAPTURE(tiny, float32, DType::Float32)->Arg(64);
BENCHMARK_CAPTURE(tiny, bfloat16, DType::BFloat16)->Arg(64);
BENCHMARK_CAPTURE(tiny, float8_e4m3fn, DType::Float8E4M3Fn)->Arg(64);
BENCHMARK_CAPTURE(tiny, float8_e4m3fnuz, DType::Float8E4M3Fnuz)->Arg(64);
BENCHMARK_CAPTURE(exact, float32, DType::Float32)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(exact, bfloat16, DType::BFloat16)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(exact, float8_e4m3fn, DType::Float8E4M3Fn)->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
