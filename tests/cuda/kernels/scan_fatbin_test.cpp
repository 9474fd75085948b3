// The fatbin that the library carries is one, and whole.
#include "cuda/scan_fatbin.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>

#include "cuda/scan_table.h"

namespace numsan::gpu {
namespace {

// fatbinary.h of the toolkit: magic, version, size of this header, size of what follows.
struct FatbinHeader {
    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t body_bytes;
};

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
    EXPECT_NE(bytes.find(kScanSmallName), std::string_view::npos);
    EXPECT_NE(bytes.find(kScanLargeName), std::string_view::npos);
}

}  // namespace
}  // namespace numsan::gpu
