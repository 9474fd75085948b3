// Names by handles: one for each name, as many as there is room for, from many threads at once.
#include "interpose/nvtx/kept_names.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace numsan {
namespace {

TEST(KeptNames, SameNameHasTheSameAddress) {
    static KeptNames* const names = new KeptNames;  // as in a process: names are never taken back
    const KeptName* forward = names->keep("forward");
    ASSERT_NE(forward, nullptr);
    EXPECT_EQ(forward->text, "forward");
    EXPECT_EQ(names->keep("forward"), forward);
    EXPECT_NE(names->keep(""), forward);
}

TEST(KeptNames, WithoutRoomKnownNamesAreStillFound) {
    static KeptNames* const names = new KeptNames;  // as in a process: names are never taken back
    for (size_t i = 0; i < KeptNames::kMost; ++i) ASSERT_NE(names->keep(std::to_string(i)), nullptr);
    for (int again = 0; again < 3; ++again) EXPECT_EQ(names->keep("one more"), nullptr);
    for (size_t i = 0; i < KeptNames::kMost; ++i) ASSERT_EQ(names->keep(std::to_string(i))->text, std::to_string(i));
}

TEST(KeptNames, ThreadsAgree) {
    static KeptNames* const names = new KeptNames;  // as in a process: names are never taken back
    std::vector<std::vector<const KeptName*>> seen(4);
    std::vector<std::thread> threads;
    for (std::vector<const KeptName*>& own : seen) {
        threads.emplace_back([&own] {
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
