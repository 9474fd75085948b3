// Which births are kept, which give way, which of two outranks the other.
#include "host/birth/birth_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

class KeepingStacks final : public StackSource {
  public:
    mutable std::map<StackId, int> kept;

    StackId capture() noexcept override { return 0; }
    bool in_module(StackId) const noexcept override { return false; }
    std::vector<SourceFrame> resolve(StackId) const override { return {}; }
    LiveNames names(const TensorReader&) override { return {}; }
    void keep(StackId id) const noexcept override { ++kept[id]; }
    void release(StackId id) const noexcept override { --kept[id]; }
};

class BirthStoreTest : public testing::Test {
  protected:
    BirthId make(Kind kind = kNaN) {
        const OpInfo info{"aten::log", "", OpClass::Other, false, 0};
        OpEvent event{};
        event.op = &info;
        OpContext context;
        context.stack = stack;
        return store.make(kind, event, context, Phase::Forward).id;
    }

    KeepingStacks stacks;
    BirthStore store{&stacks};
    Ledger ledger;
    StackId stack = 7;
};

TEST_F(BirthStoreTest, TheFirstOnesOfADivergenceOutliveASweep) {
    store.bad_loss = make();
    store.diverged = make();
    store.poisoned = make();
    const BirthId other = make();
    store.sweep({}, ledger);
    for (const BirthId id : {store.bad_loss, store.diverged, store.poisoned}) EXPECT_NE(store.find(id), nullptr);
    EXPECT_EQ(store.find(other), nullptr);
}

TEST_F(BirthStoreTest, WhatNothingRefersToIsSweptLongBeforeThereIsNoRoom) {
    size_t most = 0;
    for (size_t i = 0; i < 3 * BirthStore::kMost; ++i) {
        if (store.full()) store.sweep({}, ledger);
        make();
        most = std::max(most, store.all().size());
    }
    EXPECT_LE(most, BirthStore::kMost / 4);
    EXPECT_EQ(store.forgotten(), 0);
}

TEST_F(BirthStoreTest, AreBoundedThoughAllAreReferredTo) {
    std::set<BirthId> used;
    int sweeps = 0;
    for (size_t i = 0; i < 3 * BirthStore::kMost; ++i) {
        if (store.full()) {
            store.sweep(used, ledger);
            ++sweeps;
        }
        used.insert(make());
        ASSERT_LE(store.all().size(), BirthStore::kMost);
    }
    EXPECT_NE(store.find(*used.rbegin()), nullptr);
    EXPECT_LT(sweeps, 32) << "room is made for many at a time";
    EXPECT_EQ(store.forgotten(), static_cast<int64_t>(used.size() - store.all().size()));
}

TEST_F(BirthStoreTest, TheirStacksAreKeptAsLongAsTheyAre) {
    const BirthId first = make();
    store.find(first)->forward_stack = 9;
    EXPECT_EQ(stacks.kept[7], 1);
    EXPECT_EQ(stacks.kept[9], 1);
    {
        const Birth told = *store.find(first);
        store.drop(first);
        EXPECT_EQ(stacks.kept[9], 1) << "a finding is told of a copy";
    }
    EXPECT_EQ(stacks.kept[7], 0);
    EXPECT_EQ(stacks.kept[9], 0);
}

TEST_F(BirthStoreTest, SweepKeepsWhatIsReferredTo) {
    const BirthId used = make(), held = make(), muted = make(), lost = make();
    Ledger::Entry entry;
    entry.of(kNaN) = held;
    entry.muted = muted;
    const MadeUp tensor{kNan};
    ledger.set(tensor.view(), entry);
    store.sweep({used}, ledger);
    for (const BirthId id : {used, held, muted}) EXPECT_NE(store.find(id), nullptr);
    EXPECT_EQ(store.find(lost), nullptr);
    EXPECT_FALSE(store.full());
}

TEST_F(BirthStoreTest, IntendedOnesAndThoseThatWereNoneDoNotCount) {
    const BirthId intended = make(kPosInf), none = make();
    make();
    EXPECT_EQ(store.made(), 3);
    store.intend(*store.find(intended));
    store.drop(none);
    EXPECT_EQ(store.made(), 1);
    EXPECT_TRUE(store.intended(intended));
    EXPECT_EQ(store.find(none), nullptr);
    store.sweep({}, ledger);
    EXPECT_EQ(store.made(), 1) << "one that gave way was made";
}

TEST_F(BirthStoreTest, UnintendedOutranksIntendedAndEarlierLater) {
    BirthKinds intended, first, second, into;
    intended.of(kPosInf) = make(kPosInf);
    store.intend(*store.find(intended.of(kPosInf)));
    first.of(kPosInf) = make(kPosInf);
    second.of(kPosInf) = make(kPosInf);
    store.add_kinds(into, intended);
    EXPECT_EQ(into.of(kPosInf), intended.of(kPosInf));
    EXPECT_EQ(store.unintended_inf(into), 0u);
    store.add_kinds(into, second);
    EXPECT_EQ(into.of(kPosInf), second.of(kPosInf));
    store.add_kinds(into, first);
    EXPECT_EQ(into.of(kPosInf), first.of(kPosInf));
    store.add_kinds(into, intended);
    EXPECT_EQ(into.of(kPosInf), first.of(kPosInf));
    EXPECT_EQ(store.unintended_inf(into), first.of(kPosInf));
    BirthKinds zeros;
    zeros.muted = 5;
    zeros.flushed = 6;
    store.add_kinds(into, zeros);
    EXPECT_EQ(into.muted, 5u);
    EXPECT_EQ(into.flushed, 6u);
}

}  // namespace
}  // namespace numsan
