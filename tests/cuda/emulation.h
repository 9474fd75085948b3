// A grid of the scan kernel on the host: blocks of one thread, in any order, in any number of host threads. With
// NUMSAN_PTX the translated kernels instead.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "cuda/batch_filler.h"
#include "cuda/kernel/look_body.cuh"
#include "cuda/kernel/scan_body.cuh"
#ifdef NUMSAN_PTX
#include "tests/cuda/ptx/scan_grid.h"
#endif

namespace numsan::gpu {

/// How a grid is run.
struct Grid {
    uint32_t blocks = 1;
    int threads = 1;
    uint32_t shuffle = 0;  ///< seed of the blocks' order, 0: as they come
};

enum class Kernel : uint8_t { Scan, Look };

template <class Table>
uint32_t blocks_of(const Table& table, const Grid& grid, Kernel kernel) {
    return std::min(grid.blocks, kernel == Kernel::Look ? table.header.look_chunks : table.header.chunks);
}

#ifdef NUMSAN_PTX
/// Blocks of all their threads, as nvcc made them.
template <class Table>
void run_grid(const Table& table, const Grid& grid, Kernel kernel = Kernel::Scan) {
    constexpr uint32_t kTogether = 4;
    const uint32_t blocks = blocks_of(table, grid, kernel);
    ptx::run_kernel(table, kernel == Kernel::Look, blocks, grid.threads > 1 ? kTogether : 1, grid.shuffle);
}
#else
template <class Table>
void run_grid(const Table& table, const Grid& grid, Kernel kernel = Kernel::Scan) {
    std::vector<uint32_t> order(blocks_of(table, grid, kernel));
    std::iota(order.begin(), order.end(), 0u);
    if (grid.shuffle != 0) std::shuffle(order.begin(), order.end(), std::mt19937(grid.shuffle));
    std::atomic<size_t> next{0};
    const auto worker = [&] {
        for (size_t i = next++; i < order.size(); i = next++) {
            BlockShared shared{};
            const TableView view{table.header, table.items, table.dims};
            const auto body = kernel == Kernel::Look ? look_body : scan_body;
            body(view, order[i], static_cast<uint32_t>(order.size()), shared);
        }
    };
    std::vector<std::thread> workers;
    for (int i = 1; i < grid.threads; ++i) workers.emplace_back(worker);
    worker();
    for (std::thread& t : workers) t.join();
}
#endif

/// Every word that a launch works on, as a device would own it.
class Words {
  public:
    explicit Words(uint32_t capacity = 1024, uint32_t slots = 4096, int outputs = ScanTableLarge::kItemCapacity)
        : scratch(size_t(outputs)),
          results(slots),
          capacity_(capacity),
          ring_(static_cast<unsigned char*>(::operator new(HitRing::bytes(capacity), std::align_val_t(128)))) {
        initialise(ring(), capacity);
    }
    ~Words() { ::operator delete(ring_, std::align_val_t(128)); }
    Words(const Words&) = delete;
    Words& operator=(const Words&) = delete;

    HitRing& ring() { return *reinterpret_cast<HitRing*>(ring_); }
    uint32_t capacity() const { return capacity_; }

    ScanHeader header() {
        ScanHeader h{};
        h.raise = &raise;
        h.scratch = scratch.data();
        h.looks = &looks;
        h.launch = &launch;
        h.state = &state;
        h.ring = &ring();
        h.results = results.data();
        h.ring_capacity = capacity_;
        h.results_capacity = static_cast<uint32_t>(results.size());  // `slots` is a power of two
        return h;
    }

    /// Makes it the launch with this number of so many in a graph.
    void put_into_graph(ScanHeader& h, uint32_t number = 0, uint32_t launches = 1) {
        h.sequence = &sequence;
        h.window = &window;
        h.replays = &replays;
        h.capture = 1;
        h.launch_number = number;
        replays.launches = launches;
    }

    /// What has to hold between launches, or a replay would not start clean.
    bool at_rest() const {
        const ItemScratch rest{};
        const auto same = [&](const ItemScratch& s) { return std::memcmp(&s, &rest, sizeof rest) == 0; };
        const LookList no_looks{};
        return launch.blocks_done == 0 && launch.began_inverted == 0 &&
               std::memcmp(&looks, &no_looks, sizeof looks) == 0 && std::all_of(scratch.begin(), scratch.end(), same);
    }

    /// Everything that is in the ring.
    std::vector<HitSlot> take(HitReader& reader) {
        std::vector<HitSlot> hits;
        for (HitSlot hit; reader.next(hit);) hits.push_back(hit);
        return hits;
    }

    ScanState state = kInitialScanState;
    std::vector<ItemScratch> scratch;
    LookList looks{};
    std::vector<RangeResult> results;
    LaunchWords launch{};
    LaunchTime time{};
    ReplayWindow window{};
    ReplayWords replays{};
    uint32_t gate = 0, raise = 0, sequence = 0;

  private:
    uint32_t capacity_;
    unsigned char* ring_;
};

/// Runs a closed batch in the smallest table that holds it: the scan, and the look that follows it.
inline void run(BatchFiller& filler, const Grid& grid) {
    filler.header().scan_blocks = blocks_of(filler.large(), grid, Kernel::Scan);
    const auto run_table = [&](const auto& table) {
        run_grid(table, grid);
        if (table.header.looks != nullptr) run_grid(table, grid, Kernel::Look);
    };
    filler.fits_small() ? run_table(filler.small()) : run_table(filler.large());
}

}  // namespace numsan::gpu
