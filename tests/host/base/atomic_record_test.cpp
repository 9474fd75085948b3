// A value that one thread writes while others read it: whole or not at all.
#include "host/base/atomic_record.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace numsan {
namespace {

/// Every word says the same as long as the value is whole.
struct Wide {
    uint64_t words[8];
    static Wide of(uint64_t n) {
        Wide made;
        for (uint64_t i = 0; i < 8; ++i) made.words[i] = n * (i + 1);
        return made;
    }
    bool whole() const {
        for (uint64_t i = 0; i < 8; ++i) {
            if (words[i] != words[0] * (i + 1)) return false;
        }
        return true;
    }
};

TEST(AtomicRecord, HoldsZerosUntilWritten) {
    AtomicRecord<Wide> record;
    Wide seen = Wide::of(7);
    ASSERT_TRUE(record.load(seen));
    EXPECT_EQ(seen.words[0], 0u);
    EXPECT_EQ(seen.words[7], 0u);
}

TEST(AtomicRecord, GivesBackTheLastValue) {
    AtomicRecord<Wide> record;
    Wide seen{};
    for (const uint64_t n : {1u, 2u, 3u}) {
        ASSERT_TRUE(record.store(Wide::of(n)));
        ASSERT_TRUE(record.load(seen));
        EXPECT_EQ(seen.words[0], n);
        EXPECT_TRUE(seen.whole());
    }
}

TEST(AtomicRecord, ReaderNeverSeesATornValue) {
    constexpr uint64_t kReads = 100000;
    AtomicRecord<Wide> record;
    std::atomic<bool> enough{false};
    uint64_t written = 0;
    uint64_t refused = 0;
    std::thread writer([&] {
        while (!enough.load(std::memory_order_relaxed)) refused += record.store(Wide::of(++written)) ? 0 : 1;
    });
    uint64_t torn = 0;
    uint64_t backwards = 0;
    uint64_t changed = 0;
    uint64_t last = 0;
    for (uint64_t whole = 0; whole < kReads || changed < 100;) {
        Wide seen;
        if (!record.load(seen)) continue;
        ++whole;
        torn += seen.whole() ? 0 : 1;
        backwards += seen.words[0] < last ? 1 : 0;
        changed += seen.words[0] != last ? 1 : 0;
        last = seen.words[0];
    }
    enough = true;
    writer.join();
    EXPECT_EQ(torn, 0u);
    EXPECT_EQ(backwards, 0u);
    EXPECT_EQ(refused, 0u) << "a reader never holds up the writer";
    Wide seen;
    ASSERT_TRUE(record.load(seen));
    EXPECT_EQ(seen.words[0], written);
}

TEST(AtomicRecord, WritersThatMeetNeverMixTheirValues) {
    constexpr uint64_t kWrites = 100000;
    AtomicRecord<Wide> record;
    std::atomic<uint64_t> torn{0};
    std::atomic<uint64_t> stored{0};
    const auto work = [&](uint64_t first) {
        uint64_t mine = 0;
        for (uint64_t n = 0; n < kWrites; ++n) {
            mine += record.store(Wide::of(first + 2 * n)) ? 1 : 0;
            Wide seen;
            if (record.load(seen) && !seen.whole()) torn.fetch_add(1);
        }
        stored.fetch_add(mine);
    };
    std::thread odd(work, 1);
    work(2);
    odd.join();
    EXPECT_EQ(torn.load(), 0u);
    EXPECT_GT(stored.load(), 0u);
    Wide seen;
    ASSERT_TRUE(record.load(seen)) << "no writer left it locked";
    EXPECT_TRUE(seen.whole());
}

}  // namespace
}  // namespace numsan
