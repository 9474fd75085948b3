// The fatbin that the library carries is one, and whole.
#include "cuda/kernel/scan_fatbin.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string_view>

#include "cuda/kernel/scan_table.h"

namespace numsan::gpu {
namespace {

// fatbinary.h of the toolkit: magic, version, size of this header, size of what follows.
struct FatbinHeader {
    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t body_bytes;
};

// What the body is a row of, as cuobjdump reads it: header, then code, compressed or not.
struct EntryHeader {
    uint16_t kind;
    uint16_t version;
    uint32_t header_bytes;
    uint64_t code_bytes;  // with its padding
    uint32_t unused[3];
    uint32_t architecture;
};
enum Kind : uint16_t { kPtx = 1, kElf = 2 };

std::set<int> architectures_of(Kind kind) {
    std::set<int> found;
    EntryHeader entry;
    for (uint64_t at = sizeof(FatbinHeader); at + sizeof entry <= numsan_scan_fatbin_size;) {
        std::memcpy(&entry, numsan_scan_fatbin + at, sizeof entry);
        if (entry.header_bytes < sizeof entry) return {};
        if (entry.kind == kind) found.insert(static_cast<int>(entry.architecture));
        at += entry.header_bytes + entry.code_bytes;
    }
    return found;
}

const std::set<int> kBuiltFor{NUMSAN_CUDA_ARCHITECTURES};

TEST(ScanFatbin, HasCodeOfEveryArchitectureInTheList) { EXPECT_EQ(architectures_of(kElf), kBuiltFor); }

// A driver compiles the PTX of an architecture for every later one: GPUs older than the newest need the oldest's.
TEST(ScanFatbin, HasPtxOfTheOldestAndTheNewest) {
    EXPECT_EQ(architectures_of(kPtx), (std::set<int>{*kBuiltFor.begin(), *kBuiltFor.rbegin()}));
}

TEST(ScanFatbin, IsWhole) {
    FatbinHeader header;
    ASSERT_GT(numsan_scan_fatbin_size, sizeof header);
    std::memcpy(&header, numsan_scan_fatbin, sizeof header);
    EXPECT_EQ(header.magic, 0xBA55ED50u);
    EXPECT_EQ(header.header_bytes + header.body_bytes, numsan_scan_fatbin_size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(numsan_scan_fatbin) % 8, 0u);
}

TEST(ScanFatbin, HasTheKernelsByName) {
    const std::string_view bytes(reinterpret_cast<const char*>(numsan_scan_fatbin), numsan_scan_fatbin_size);
    for (const char* name : kKernelNames) EXPECT_NE(bytes.find(name), std::string_view::npos) << name;
}

}  // namespace
}  // namespace numsan::gpu
