// Escapes that wait, and what ends the wait.
#include "host/verdict/pending.h"

#include <gtest/gtest.h>

namespace numsan {
namespace {

PendingEscape of_birth(BirthId birth) { return {.birth = birth}; }

std::vector<BirthId> births(const PendingStore::List& list) {
    std::vector<BirthId> found;
    for (const PendingEscape& escape : list) found.push_back(escape.birth);
    return found;
}

TEST(PendingStore, KeepsReasonsApartAndInOrder) {
    PendingStore store;
    store.add(PendingReason::Muted, of_birth(2));
    store.add(PendingReason::HostRead, of_birth(3));
    store.add(PendingReason::Muted, of_birth(1));
    EXPECT_EQ(births(store.of(PendingReason::Muted)), (std::vector<BirthId>{2, 1}));
    EXPECT_EQ(births(store.take(PendingReason::HostRead)), (std::vector<BirthId>{3}));
    EXPECT_TRUE(store.of(PendingReason::HostRead).empty());
    EXPECT_EQ(store.of(PendingReason::Muted).size(), 2u);
}

TEST(PendingStore, TakesThoseThatAreAskedFor) {
    PendingStore store;
    for (BirthId birth = 1; birth <= 5; ++birth) store.add(PendingReason::Gradient, of_birth(birth));
    const auto odd = [](const PendingEscape& escape) { return escape.birth % 2 == 1; };
    EXPECT_EQ(births(store.take_if(PendingReason::Gradient, odd)), (std::vector<BirthId>{1, 3, 5}));
    EXPECT_EQ(births(store.of(PendingReason::Gradient)), (std::vector<BirthId>{2, 4}));
}

TEST(PendingStore, IsBoundedForEachReason) {
    PendingStore store;
    for (size_t i = 0; i < PendingStore::kMost; ++i) EXPECT_TRUE(store.add(PendingReason::Gradient, of_birth(1)));
    EXPECT_EQ(store.forgotten(), 0);
    EXPECT_FALSE(store.add(PendingReason::Gradient, of_birth(1)));
    EXPECT_EQ(store.of(PendingReason::Gradient).size(), PendingStore::kMost);
    EXPECT_EQ(store.forgotten(), 1);
    EXPECT_TRUE(store.add(PendingReason::Checked, of_birth(1))) << "another reason has room of its own";
}

TEST(PendingStore, KeepsTheFirstAndTheLastOfMany) {
    PendingStore store;
    constexpr size_t kMany = 10 * PendingStore::kMost;
    for (size_t i = 1; i <= kMany; ++i) EXPECT_TRUE(store.add(PendingReason::HostRead, of_birth(i)));
    const PendingStore::List& list = store.of(PendingReason::HostRead);
    EXPECT_LE(list.size(), PendingStore::kMost);
    EXPECT_EQ(list[0].birth, 1u);
    EXPECT_EQ(list[PendingStore::kMost / 4 - 1].birth, PendingStore::kMost / 4);
    EXPECT_EQ(list.back().birth, kMany);
    EXPECT_EQ(store.forgotten() + static_cast<int64_t>(list.size()), static_cast<int64_t>(kMany));
}

TEST(PendingStore, NamesTheBirthsThatMustBeKept) {
    PendingStore store;
    for (const PendingPolicy& policy : kPendingPolicies)
        store.add(policy.reason, of_birth(10 + static_cast<BirthId>(policy.reason)));
    std::set<BirthId> kept{7};
    store.add_births(kept);
    EXPECT_EQ(kept.size(), 1 + std::size(kPendingPolicies));
    store.clear();
    for (const PendingPolicy& policy : kPendingPolicies) EXPECT_TRUE(store.of(policy.reason).empty());
}

TEST(PendingPolicy, EndsEachWait) {
    for (const PendingPolicy& policy : kPendingPolicies) {
        EXPECT_NE(policy.at_end, PendingFate::Keep) << "a run is over";
        EXPECT_NE(policy.at_step, PendingFate::Ask) << "a step decides by the table alone";
        EXPECT_NE(policy.severity, Severity::Info);
    }
}

}  // namespace
}  // namespace numsan
