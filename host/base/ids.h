// Numbers that count different things: types of their own, so that one is not taken for another. Depends on nothing.
#pragma once

#include <compare>
#include <cstdint>

namespace numsan {

/// The number of an op in program order, from 0.
enum class OpSeq : int64_t {
    None = -1,
    End = INT64_MAX,  ///< after every op
};

constexpr int64_t number(OpSeq seq) { return static_cast<int64_t>(seq); }

/// The number that autograd gives a node, counted by each thread that runs forward ops.
enum class NodeSeq : uint64_t { None = ~uint64_t(0) };

constexpr uint64_t number(NodeSeq sequence) { return static_cast<uint64_t>(sequence); }

/// The number under which a DeviceScanner is asked about an output. Those of one event follow each other.
struct ScanTicket {
    uint64_t number = 0;

    auto operator<=>(const ScanTicket&) const = default;
    constexpr ScanTicket operator+(uint64_t further) const { return {number + further}; }
    constexpr ScanTicket& operator++() {
        ++number;
        return *this;
    }
};

/// Launches of kernels, `first` to `end - 1` of the process: those of one thread, while an op ran there. Empty where
/// launches are not watched.
struct LaunchSpan {
    uint64_t first = 0;
    uint64_t end = 0;
    uint32_t thread = 0;  ///< as the watch numbers threads

    constexpr bool empty() const { return first == end; }
};

static_assert(sizeof(NodeSeq) == sizeof(uint64_t) && sizeof(ScanTicket) == sizeof(uint64_t));

}  // namespace numsan
