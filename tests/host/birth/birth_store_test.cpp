// Which births are kept, and which give way.
#include "host/birth/birth_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

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
    BirthId make() {
        const OpInfo info{"aten::log", "", OpClass::Other, false, 0};
        OpEvent event{};
        event.op = &info;
        OpContext context;
        context.stack = stack;
        return store.make(kNaN, event, context, Phase::Forward).id;
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

}  // namespace
}  // namespace numsan
