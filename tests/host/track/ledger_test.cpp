// The ledger of bad and unwritten storages: identity, reuse of addresses, bounds.
#include "host/track/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

TensorView at(const void* storage, const void* data) {
    TensorView view{};
    view.storage = storage;
    view.storage_data = data;
    view.storage_bytes = 16;
    view.numel = 4;
    view.dtype = DType::Float32;
    return view;
}

const void* address(uintptr_t n) { return reinterpret_cast<const void*>(n * 64 + 0x100000); }

Ledger::Entry nan_of(BirthId birth) {
    Ledger::Entry entry;
    entry.of(kNaN) = birth;
    return entry;
}

TEST(Ledger, KeepsBirthsByKind) {
    Ledger ledger;
    Ledger::Entry entry;
    EXPECT_TRUE(entry.empty());
    entry.of(kNaN) = 1;
    entry.of(kPosInf) = 2;
    entry.of(kNegInf) = 3;
    ledger.set(at(address(1), address(2)), entry);
    const Ledger::Entry* found = ledger.find(at(address(1), address(2)));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->of(kNaN), 1u);
    EXPECT_EQ(found->of(kPosInf), 2u);
    EXPECT_EQ(found->of(kNegInf), 3u);
    EXPECT_EQ(found->bytes, 16);
    EXPECT_EQ(ledger.entries().size(), 1u);
}

TEST(Ledger, PresenceFollowsWhatIsKept) {
    Ledger ledger;
    const TensorView t = at(address(1), address(2));
    EXPECT_FALSE(ledger.may_hold(t.storage));
    EXPECT_FALSE(ledger.may_hold_any());
    ledger.set(t, nan_of(1));
    ledger.set(t, nan_of(2));
    EXPECT_TRUE(ledger.may_hold(t.storage));
    EXPECT_TRUE(ledger.may_hold_any());
    ledger.clear(t);
    ledger.clear(t);
    EXPECT_FALSE(ledger.may_hold(t.storage));
    EXPECT_FALSE(ledger.may_hold_any());
    ledger.set(t, nan_of(1));
    ledger.set(t, Ledger::Entry{});
    EXPECT_FALSE(ledger.may_hold(t.storage)) << "an empty entry is no entry";
    ledger.mark_unwritten(t, 1, OpSeq{1});
    ledger.mark_unwritten(t, 1, OpSeq{2});
    EXPECT_TRUE(ledger.may_hold(t.storage));
    EXPECT_TRUE(ledger.may_hold_any());
    ledger.mark_written(t);
    ledger.mark_written(t);
    EXPECT_FALSE(ledger.may_hold(t.storage));
    EXPECT_FALSE(ledger.may_hold_any());
}

TEST(Ledger, CleanStoragesAreToldFromThoseOfAModelThatIsBadAllOver) {
    Ledger ledger;
    constexpr uintptr_t kBad = 20000;
    for (uintptr_t i = 0; i < kBad; ++i) ledger.set(at(address(i), address(i)), nan_of(1));
    int taken_for_bad = 0;
    for (uintptr_t i = 0; i < kBad; ++i) {
        EXPECT_TRUE(ledger.may_hold(address(i)));
        taken_for_bad += ledger.may_hold(address(kBad + i)) ? 1 : 0;
    }
    EXPECT_LT(taken_for_bad, 3000) << "each sends an op to the verdict's lock";
    for (uintptr_t i = 0; i < kBad; ++i) ledger.clear(at(address(i), address(i)));
    EXPECT_FALSE(ledger.may_hold_any());
    EXPECT_FALSE(ledger.may_hold(address(1)));
}

TEST(Ledger, MemoryIsUnwrittenUntilAllOfItWasWritten) {
    Ledger ledger;
    const TensorView whole = at(address(1), address(2));
    TensorView part = whole;
    part.numel = 3;
    ledger.mark_unwritten(whole, 1, OpSeq{1});
    ledger.mark_written(part);
    ASSERT_NE(ledger.unwritten(whole), nullptr);
    EXPECT_EQ(ledger.unwritten(whole)->bytes, 16);
    EXPECT_EQ(ledger.unwritten(whole)->missing, 4);
    part.numel = 1;
    ledger.mark_written(part);
    EXPECT_EQ(ledger.unwritten(whole), nullptr);
    EXPECT_FALSE(ledger.may_hold(whole.storage));
}

TEST(Ledger, ReusedAddressOfAStorageIsAnotherStorage) {
    Ledger ledger;
    ledger.set(at(address(1), address(2)), nan_of(1));
    EXPECT_EQ(ledger.find(at(address(1), address(3))), nullptr);
    EXPECT_FALSE(ledger.may_hold(address(1)));
    EXPECT_EQ(ledger.find(at(address(1), address(2))), nullptr) << "the dead storage's entry is gone for good";
}

TEST(Ledger, AllocationEndsWhatTheAddressHeldBefore) {
    Ledger ledger;
    const TensorView t = at(address(1), address(2));
    ledger.set(t, nan_of(1));
    ledger.mark_unwritten(t, 7, OpSeq{8});
    EXPECT_EQ(ledger.find(t), nullptr);
    ASSERT_NE(ledger.unwritten(t), nullptr);
    EXPECT_EQ(ledger.unwritten(t)->stack, 7u);
    EXPECT_EQ(ledger.unwritten(t)->seq, OpSeq{8});
    EXPECT_EQ(ledger.unwritten(at(address(1), address(3))), nullptr);
}

TEST(Ledger, UnwrittenMarksAreBoundedAndTheOldestGoFirst) {
    Ledger ledger;
    for (uintptr_t i = 0; i < 20000; ++i)
        ledger.mark_unwritten(at(address(i), address(i)), 1, OpSeq{static_cast<int64_t>(i)});
    EXPECT_EQ(ledger.unwritten(at(address(0), address(0))), nullptr);
    EXPECT_NE(ledger.unwritten(at(address(19999), address(19999))), nullptr);
    int64_t kept = 0;
    for (uintptr_t i = 0; i < 20000; ++i) kept += ledger.unwritten(at(address(i), address(i))) != nullptr ? 1 : 0;
    EXPECT_EQ(kept, 8192);
}

TEST(Ledger, AFreshMarkOutlivesOldMarksOfTheSameAddress) {
    Ledger ledger;
    const TensorView reused = at(address(1), address(1));
    ledger.mark_unwritten(reused, 1, OpSeq{0});
    ledger.mark_written(reused);
    for (uintptr_t i = 10; i < 10 + 8190; ++i) {
        ledger.mark_unwritten(at(address(i), address(i)), 1, OpSeq{1});
        ledger.mark_written(at(address(i), address(i)));
    }
    ledger.mark_unwritten(reused, 1, OpSeq{2});
    for (uintptr_t i = 10; i < 20; ++i) ledger.mark_unwritten(at(address(i), address(i)), 1, OpSeq{3});
    ASSERT_NE(ledger.unwritten(reused), nullptr);
    EXPECT_EQ(ledger.unwritten(reused)->seq, OpSeq{2});
}

TEST(Ledger, BadStoragesAreBoundedAndTheColdestGoFirst) {
    Ledger ledger(100);
    const TensorView hot = at(address(0), address(0));
    ledger.set(hot, nan_of(1));
    for (uintptr_t n = 1; n < 5000; ++n) {
        ledger.set(at(address(n), address(n)), nan_of(n));
        ASSERT_LE(ledger.entries().size(), 100u);
        ASSERT_NE(ledger.find(hot), nullptr) << n;
        ASSERT_NE(ledger.find(at(address(n), address(n))), nullptr);
    }
    EXPECT_EQ(ledger.forgotten() + static_cast<int64_t>(ledger.entries().size()), 5000);
    std::vector<const void*> left;
    for (const auto& [storage, entry] : ledger.entries()) left.push_back(storage);
    for (const void* storage : left) ledger.clear(at(storage, storage));
    EXPECT_FALSE(ledger.may_hold_any()) << "what gave way is not counted as present";
}

TEST(Ledger, OfManyBadStoragesThoseOfAThousandStepsAgoGiveWay) {
    Ledger ledger;
    const TensorView used = at(address(0), address(0));
    ledger.set(used, nan_of(1));
    uintptr_t last = 0;
    for (int64_t step = 0; step < 20000; ++step) {  // ten a step that die, at addresses that do not come again
        ledger.begin_step(step);
        for (int i = 0; i < 10; ++i) {
            ++last;
            ledger.set(at(address(last), address(last)), nan_of(1));
        }
        ASSERT_NE(ledger.find(used), nullptr);
        ASSERT_LE(ledger.entries().size(), 2 * Ledger::kManyBad);
        const uintptr_t recent = last - std::min<uintptr_t>(last - 1, 10 * (Ledger::kStepsKept - 1));
        ASSERT_TRUE(ledger.may_hold(address(recent))) << "step " << step;
    }
    EXPECT_EQ(ledger.forgotten() + static_cast<int64_t>(ledger.entries().size()), static_cast<int64_t>(last) + 1);
    std::vector<const void*> left;
    for (const auto& [storage, entry] : ledger.entries()) left.push_back(storage);
    for (const void* storage : left) ledger.clear(at(storage, storage));
    EXPECT_FALSE(ledger.may_hold_any()) << "what gave way is not counted as present";
}

TEST(Ledger, ManyBadStoragesOfOneStepAreAllKept) {
    Ledger ledger;
    constexpr uintptr_t kOfOneStep = 100000;
    for (uintptr_t n = 0; n < kOfOneStep; ++n) ledger.set(at(address(n), address(n)), nan_of(1));
    EXPECT_EQ(ledger.entries().size(), kOfOneStep);
    EXPECT_EQ(ledger.forgotten(), 0);
}

TEST(Ledger, ReceivedMarksAreBoundedAndTheOldestGoFirst) {
    Ledger ledger;
    constexpr auto kMany = static_cast<int64_t>(2 * Ledger::kMaxReceived);
    for (int64_t n = 0; n < kMany; ++n) {
        Ledger::Received received;
        received.seq = OpSeq{n};
        ledger.mark_received(at(address(static_cast<uintptr_t>(n)), address(0)), received);
    }
    const auto there = [&](int64_t n) {
        return ledger.received(at(address(static_cast<uintptr_t>(n)), address(0))) != nullptr;
    };
    EXPECT_FALSE(there(0));
    for (int64_t n = kMany - static_cast<int64_t>(Ledger::kMaxReceived) / 2; n < kMany; ++n) ASSERT_TRUE(there(n)) << n;
}

}  // namespace
}  // namespace numsan
