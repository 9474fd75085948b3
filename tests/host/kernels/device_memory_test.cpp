#include "host/kernels/device_memory.h"

#include <gtest/gtest.h>

namespace numsan {
namespace {

constexpr DType kFloat = DType::Float32;

TEST(DeviceMemory, ABufferEndsWithItsAllocationOrWhereAnotherTypeBegins) {
    DeviceMemory memory;
    EXPECT_FALSE(memory.at(0x1000, kFloat));
    memory.allocated(0x1000, 256, false);
    ASSERT_TRUE(memory.at(0x1040, kFloat));
    EXPECT_EQ(memory.at(0x1040, kFloat)->bytes, 192);
    EXPECT_EQ(memory.at(0x1040, kFloat)->allocation, 0x1000u);
    EXPECT_EQ(memory.at(0x1040, kFloat)->allocation_bytes, 256);
    memory.has_type(0x1080, kFloat);
    EXPECT_EQ(memory.at(0x1000, kFloat)->bytes, 256) << "an address within it";
    EXPECT_EQ(memory.at(0x1000, DType::Float64)->bytes, 128);
    memory.has_integers(0x10c0);
    EXPECT_EQ(memory.at(0x1000, kFloat)->bytes, 192);
    EXPECT_FALSE(memory.at(0x1100, kFloat));
    memory.freed(0x1000);
    EXPECT_FALSE(memory.at(0x1000, kFloat));
}

TEST(DeviceMemory, ABufferIsBounded) {
    DeviceMemory memory;
    memory.allocated(0x1000, 3 * DeviceMemory::kMostBytes, false);
    EXPECT_EQ(memory.at(0x1000, kFloat)->bytes, DeviceMemory::kMostBytes);
    EXPECT_TRUE(memory.at(0x1000, kFloat)->cut);
    const uint64_t last = 0x1000 + 2 * static_cast<uint64_t>(DeviceMemory::kMostBytes);
    EXPECT_EQ(memory.at(last, kFloat)->bytes, DeviceMemory::kMostBytes);
    EXPECT_FALSE(memory.at(last, kFloat)->cut);
}

TEST(DeviceMemory, WhatIsAllocatedAnewWasFreed) {
    DeviceMemory memory;
    memory.allocated(0x1000, 256, false);
    memory.allocated(0x2000, 256, false);
    memory.has_type(0x1010, kFloat);
    memory.allocated(0x10f0, 0x1000, false);  // over the end of one and the beginning of another
    EXPECT_FALSE(memory.at(0x1000, kFloat));
    EXPECT_EQ(memory.at(0x2000, kFloat)->allocation, 0x10f0u);
    memory.allocated(0x1000, 64, false);
    EXPECT_EQ(memory.at(0x1000, kFloat)->bytes, 64);
    memory.allocated(0x3000, 0, false);
    EXPECT_FALSE(memory.at(0x3000, kFloat));
}

TEST(DeviceMemory, TheTypeIsThatOfTheBeginningBefore) {
    DeviceMemory memory;
    memory.allocated(0x1000, 256, false);
    EXPECT_FALSE(memory.type_at(0x1000));
    memory.has_type(0x1000, DType::Float64);
    memory.has_type(0x1080, DType::Float16);
    EXPECT_EQ(memory.beginning_of(0x1008), 0x1000u);
    EXPECT_EQ(memory.beginning_of(0x10ff), 0x1080u);
    EXPECT_EQ(memory.type_at(0x1008), DType::Float64);
    EXPECT_EQ(memory.type_at(0x1090), DType::Float16);
    memory.has_integers(0x10c0);
    EXPECT_FALSE(memory.type_at(0x10c0));
    memory.forget();
    EXPECT_FALSE(memory.type_at(0x1008));
}

TEST(DeviceMemory, ValuesAreKnownUntilSomethingElseWrites) {
    DeviceMemory memory;
    memory.allocated(0x1000, 256, false);
    memory.allocated(0x2000, 256, false);
    EXPECT_FALSE(memory.is_known(0x1000));
    memory.known(0x1000);
    memory.known(0x2000);
    EXPECT_TRUE(memory.is_known(0x1000));
    memory.written(0x1010);
    EXPECT_FALSE(memory.is_known(0x1000));
    EXPECT_TRUE(memory.is_known(0x2000));
    memory.all_written();
    EXPECT_FALSE(memory.is_known(0x2000));
    memory.known(0x2000);
    memory.has_type(0x2000, DType::Float32);  // its bits are other numbers now
    EXPECT_FALSE(memory.is_known(0x2000));
}

TEST(DeviceMemory, WhatTheHostMayWriteIsNeverKnown) {
    DeviceMemory memory;
    memory.allocated(0x1000, 256, true);
    memory.known(0x1000);
    EXPECT_FALSE(memory.is_known(0x1000));
}

TEST(DeviceMemory, BeginningsAreBounded) {
    DeviceMemory memory;
    memory.allocated(0x1000, 1 << 20, false);
    for (uint64_t i = 0; i < 2 * DeviceMemory::kMostBuffers; ++i) memory.has_integers(0x1000 + 16 * i);
    EXPECT_EQ(memory.at(0x1000, kFloat)->bytes, 16);
    const uint64_t last = 0x1000 + 16 * (DeviceMemory::kMostBuffers - 1);
    EXPECT_EQ(memory.at(last, kFloat)->bytes, (1 << 20) - static_cast<int64_t>(last - 0x1000));
}

}  // namespace
}  // namespace numsan
