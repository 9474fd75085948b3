// Unit tests of host/stacks/native_stacks.h: frames, lines and interning of this program's own stack.
#include "host/stacks/native_stacks.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "host/stacks/return_addresses.h"

namespace numsan {
namespace {

/// True when this program was compiled with -g: only then are there lines to find.
bool has_debug_information() {
    std::ifstream file("/proc/self/exe", std::ios::binary);
    const std::string image((std::istreambuf_iterator<char>(file)), {});
    return image.find(".debug_line") != std::string::npos;
}

struct Captured {
    StackId id = 0;
    int line = 0;
};

__attribute__((noinline)) Captured inner(NativeStacks& stacks) {
    Captured captured;
    captured.line = __LINE__ + 1;
    captured.id = stacks.capture();
    return captured;
}

__attribute__((noinline)) Captured middle(NativeStacks& stacks) {
    Captured captured = inner(stacks);
    asm volatile("" ::: "memory");
    return captured;
}

__attribute__((noinline)) Captured outer(NativeStacks& stacks) {
    Captured captured = middle(stacks);
    asm volatile("" ::: "memory");
    return captured;
}

TEST(NativeStacks, a_stack_reads_innermost_first) {
    NativeStacks stacks;
    const Captured captured = outer(stacks);
    ASSERT_NE(captured.id, 0u);
    const auto frames = stacks.resolve(captured.id);
    ASSERT_GE(frames.size(), 3u);
    for (const auto& frame : frames) {
        EXPECT_TRUE(frame.native);
        EXPECT_EQ(frame.self, nullptr);
        EXPECT_FALSE(frame.function.empty());
    }
    if (!NativeStacks::has_lines()) GTEST_SKIP() << "libdw is not installed: function names come from exported symbols";
    EXPECT_NE(frames[0].function.find("inner"), std::string::npos) << frames[0].function;
    EXPECT_NE(frames[1].function.find("middle"), std::string::npos) << frames[1].function;
    EXPECT_NE(frames[2].function.find("outer"), std::string::npos) << frames[2].function;
    if (!has_debug_information()) GTEST_SKIP() << "built without -g: no lines to compare";
    EXPECT_TRUE(frames[0].file.ends_with("native_stacks_test.cpp")) << frames[0].file;
    EXPECT_EQ(frames[0].line, captured.line);
}

TEST(NativeStacks, the_c_library_is_left_out) {
    NativeStacks stacks;
    for (const auto& frame : stacks.resolve(outer(stacks).id)) {
        EXPECT_EQ(frame.function.find("__libc_start"), std::string::npos) << frame.function;
    }
}

TEST(NativeStacks, the_same_place_is_the_same_stack) {
    NativeStacks stacks;
    StackId first = 0;
    for (int i = 0; i < 100; ++i) {
        const StackId id = outer(stacks).id;
        if (!first) first = id;
        ASSERT_EQ(id, first);
    }
    EXPECT_NE(middle(stacks).id, first);
    EXPECT_FALSE(stacks.in_module(first));
}

TEST(NativeStacks, other_threads_have_stacks_of_their_own) {
    NativeStacks stacks;
    StackId other = 0;
    std::thread([&] { other = outer(stacks).id; }).join();
    EXPECT_NE(other, 0u);
    EXPECT_NE(other, outer(stacks).id);
}

TEST(NativeStacks, deep_recursion_is_cut) {
    NativeStacks stacks;
    struct Recursion {
        __attribute__((noinline)) static StackId go(NativeStacks& into, int depth) {
            const StackId id = depth ? go(into, depth - 1) : into.capture();
            asm volatile("" ::: "memory");
            return id;
        }
    };
    EXPECT_LE(stacks.resolve(Recursion::go(stacks, 200)).size(), size_t(ReturnAddresses::kMost));
}

TEST(NativeStacks, there_are_no_names) {
    NativeStacks stacks;
    EXPECT_TRUE(stacks.names({}).modules.empty());
    EXPECT_TRUE(stacks.resolve(0).empty());
}

}  // namespace
}  // namespace numsan
