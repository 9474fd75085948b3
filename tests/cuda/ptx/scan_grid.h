// A grid of the scan kernels as translated PTX: blocks of all their threads, over the memory that the table names.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "cuda/kernel/scan_policy.h"
#include "cuda/kernel/scan_table.h"
#include "host/base/dtype.h"
#include "tests/cuda/ptx/machine.h"

namespace numsan::ptx {

namespace sm_75 {
extern const std::vector<Kernel> kernels;
}
namespace sm_90 {
extern const std::vector<Kernel> kernels;
}

/// Those that NUMSAN_PTX names: of an architecture, 75 or 90 (so without it), or of a library that mutants.py made.
inline const std::vector<Kernel>& chosen_kernels() {
    const char* const named = std::getenv("NUMSAN_PTX");
    const std::string name = named != nullptr ? named : "90";
    if (name == "75") return sm_75::kernels;
    if (name == "90") return sm_90::kernels;
    void* const library = name.find('/') != std::string::npos ? dlopen(named, RTLD_NOW) : nullptr;
    void* const made = library != nullptr ? dlsym(library, "mutant_kernels") : nullptr;
    if (made == nullptr)
        throw std::runtime_error("NUMSAN_PTX is '" + name + "', not the PTX that is run: 75, 90 or a library's path");
    return *static_cast<const std::vector<Kernel>*>(reinterpret_cast<const void* (*)()>(made)());
}

/// A library of one kernel leaves the other one to sm_90.
inline const Kernel& kernel_named(const char* name) {
    static const std::vector<Kernel>& chosen = chosen_kernels();
    for (const std::vector<Kernel>* const all : {&chosen, &sm_90::kernels}) {
        const auto named = [&](const Kernel& kernel) { return std::strcmp(kernel.name, name) == 0; };
        const auto found = std::find_if(all->begin(), all->end(), named);
        if (found != all->end()) return *found;
    }
    throw std::runtime_error(std::string("no kernel ") + name);
}

/// The bytes of a tensor and no others: between rows with gaps is nothing of it.
inline void add_memory_of(const gpu::ScanItem& item, const gpu::ScanDim* dims, std::vector<Memory>& memory) {
    const size_t element = info(item.dtype).element_bytes();
    const auto* data = static_cast<const unsigned char*>(item.data);
    if ((item.flags & gpu::kGaps) == 0) {
        memory.push_back({data, static_cast<size_t>(item.positions) * element});
        return;
    }
    const gpu::ScanDim* const begin = dims + item.first_dim;
    const gpu::ScanDim* const end = begin + item.ndim;
    const bool rows = begin != end && begin->stride == static_cast<int64_t>(element);
    const gpu::ScanDim* const outer = rows ? begin + 1 : begin;
    const size_t bytes = rows ? static_cast<size_t>(begin->size) * element : element;
    std::vector<int64_t> at(static_cast<size_t>(end - outer), 0);
    for (bool more = true; more;) {
        int64_t offset = 0;
        for (size_t i = 0; i < at.size(); ++i) offset += at[i] * outer[i].stride;
        memory.push_back({data + offset, bytes});
        more = false;
        for (size_t i = 0; i < at.size() && !more; ++i) {
            more = ++at[i] < outer[i].size;
            if (!more) at[i] = 0;
        }
    }
}

/// All that a launch with this table may touch.
template <class Table>
std::vector<Memory> memory_of(const Table& table) {
    const gpu::ScanHeader& h = table.header;
    std::vector<Memory> memory;
    const auto add = [&](const void* data, size_t bytes) {
        if (data != nullptr) memory.push_back({data, bytes, true});
    };
    for (const uint32_t* word : {h.gate, h.raise, h.sequence}) add(word, sizeof *word);
    add(h.launch, sizeof *h.launch);
    add(h.time, sizeof *h.time);
    add(h.window, sizeof *h.window);
    add(h.replays, sizeof *h.replays);
    add(h.looks, sizeof *h.looks);
    add(h.scratch, h.outputs * sizeof *h.scratch);
    add(h.state, sizeof *h.state);
    add(h.ring, gpu::HitRing::bytes(h.ring_capacity));
    add(h.results, h.results_capacity * sizeof *h.results);
    for (uint32_t i = 0; i < h.outputs; ++i) add_memory_of(table.items[i], table.dims, memory);
    for (uint32_t i = 1; i <= h.inputs; ++i)
        add_memory_of(table.items[Table::kItemCapacity - static_cast<int>(i)], table.dims, memory);
    return memory;
}

/// `together`, `seed`: as in Launch. Throws std::runtime_error with what the kernel did that no kernel may do.
template <class Table>
void run_kernel(const Table& table, bool look, uint32_t blocks, uint32_t together, uint32_t seed) {
    const bool small = std::is_same_v<Table, gpu::ScanTableSmall>;
    const Kernel& kernel = kernel_named(look ? (small ? gpu::kLookSmallName : gpu::kLookLargeName)
                                             : (small ? gpu::kScanSmallName : gpu::kScanLargeName));
    const std::string fault = run({kernel, &table, blocks, gpu::kBlockThreads, together, seed, memory_of(table)});
    if (!fault.empty()) throw std::runtime_error(fault);
}

}  // namespace numsan::ptx
