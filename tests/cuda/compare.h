// One tensor through the kernel's source and through the oracle: the comparison that tests and fuzzers share.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "tests/cuda/emulation.h"
#include "tests/cuda/reference.h"

namespace numsan::gpu {

/// A tensor over memory that somebody else owns.
struct Shaped {
    std::vector<int64_t> sizes, strides;
    TensorView view{};

    Shaped(const void* data, DType dtype, std::vector<int64_t> sz, std::vector<int64_t> st) : sizes(sz), strides(st) {
        view.data = data;
        view.dtype = dtype;
        view.device = Device::Cuda;
        view.flags = kScannable;
        view.ndim = static_cast<int16_t>(sizes.size());
        view.numel = 1;
        for (int64_t s : sizes) view.numel *= s;
        view.sizes = sizes.data();
        view.strides = strides.data();
    }
    Shaped(const void* data, DType dtype, int64_t n) : Shaped(data, dtype, {n}, {1}) {}
    Shaped(const Shaped& other) : sizes(other.sizes), strides(other.strides), view(other.view) {
        view.sizes = sizes.data();
        view.strides = strides.data();
    }
};

#define NUMSAN_COMPARE(field) \
    if (!(got.field == want.field)) out << #field << " is " << +got.field << ", not " << +want.field << "; ";

inline std::string difference(const Health& got, const Health& want) {
    std::ostringstream out;
    out.precision(17);
    NUMSAN_COMPARE(elements)
    NUMSAN_COMPARE(nan)
    NUMSAN_COMPARE(pos_inf)
    NUMSAN_COMPARE(neg_inf)
    NUMSAN_COMPARE(subnormal)
    NUMSAN_COMPARE(zero)
    NUMSAN_COMPARE(finite)
    NUMSAN_COMPARE(absmax)
    NUMSAN_COMPARE(absmin)
    NUMSAN_COMPARE(min)
    NUMSAN_COMPARE(max)
    NUMSAN_COMPARE(first_bad)
    NUMSAN_COMPARE(first_bad_bits)
    NUMSAN_COMPARE(first_bad_kind)
    return out.str();
}

/// The range words of one slot, and its hit (null when there was none), against the oracle. Empty when they agree.
inline std::string difference(const RangeResult& got_range, const HitSlot* hit, const TensorView& view) {
    const Summary want = reference_scan(view);
    std::ostringstream out;
    const auto compare = [&](const char* what, uint64_t got, uint64_t expected) {
        if (got != expected) out << what << " is " << got << ", not " << expected << "; ";
    };
    compare("largest", got_range.largest, want.largest);
    compare("smallest_nonzero", got_range.smallest_nonzero, want.smallest_nonzero);
    compare("bad", got_range.bad, want.health.first_bad >= 0);
    compare("hit", hit != nullptr, want.health.first_bad >= 0);
    if (hit != nullptr) out << difference(to_health(*hit), want.health);
    return out.str();
}

/// Scans `view` alone, by a grid. Empty when everything agrees with the oracle. `chunk_log2`: of a tensor without gaps,
/// 0 for what its size asks for.
inline std::string scan_and_compare(const TensorView& view, const Grid& grid = {}, uint32_t chunk_log2 = 0) {
    static thread_local BatchFiller filler;
    Words words(4, 1, 1);
    HitReader reader(words.ring(), words.capacity());
    filler.begin(words.header());
    const Admission admission = filler.add(view, 0, 0);
    if (admission != Admission::Added) return "not added: " + std::to_string(int(admission));
    if (!filler.close()) return "nothing to launch";
    if (chunk_log2 != 0) {
        const ScanItem& item = filler.large().items[0];
        filler.header().chunk_log2 = chunk_log2;
        filler.header().chunks = chunks_of(loads_of(item, info(view.dtype).element_bytes()), chunk_log2);
    }
    run(filler, grid);
    if (!words.at_rest()) return "the scratch is not at rest";
    const std::vector<HitSlot> hits = words.take(reader);
    if (hits.size() > 1) return std::to_string(hits.size()) + " hits for one tensor";
    return difference(words.results[0], hits.empty() ? nullptr : hits.data(), view);
}

}  // namespace numsan::gpu
