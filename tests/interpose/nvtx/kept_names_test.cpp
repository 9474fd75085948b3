// Names by handles: one for each name, as many as there is room for, from many threads at once.
#include "interpose/nvtx/kept_names.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace numsan {
namespace {

TEST(KeptNames, SameNameHasTheSameAddress) {
    const auto names = std::make_unique<KeptNames>();
    const KeptName* forward = names->keep("forward");
    ASSERT_NE(forward, nullptr);
    EXPECT_EQ(forward->text, "forward");
    EXPECT_EQ(names->keep("forward"), forward);
    EXPECT_NE(names->keep(""), forward);
}

TEST(KeptNames, WithoutRoomKnownNamesAreStillFound) {
    const auto names = std::make_unique<KeptNames>();
    for (size_t i = 0; i < KeptNames::kMost; ++i) ASSERT_NE(names->keep(std::to_string(i)), nullptr);
    for (int again = 0; again < 3; ++again) EXPECT_EQ(names->keep("one more"), nullptr);
    for (size_t i = 0; i < KeptNames::kMost; ++i) ASSERT_EQ(names->keep(std::to_string(i))->text, std::to_string(i));
}

TEST(KeptNames, ThreadsAgree) {
    const auto names = std::make_unique<KeptNames>();
    std::vector<std::vector<const KeptName*>> seen(4);
    std::vector<std::thread> threads;
    for (std::vector<const KeptName*>& own : seen) {
        threads.emplace_back([&names, &own] {
            for (int i = 0; i < 2000; ++i) own.push_back(names->keep("name " + std::to_string(i)));
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::vector<const KeptName*>& own : seen) EXPECT_EQ(own, seen[0]);
    for (size_t i = 2000; i < KeptNames::kMost; ++i)  // no room was lost to those who came second
        EXPECT_NE(names->keep(std::to_string(i)), nullptr);
}

}  // namespace
}  // namespace numsan
