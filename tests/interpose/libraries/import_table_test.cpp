#include "interpose/libraries/import_table.h"

#include <gnu/libc-version.h>
#include <gtest/gtest.h>

#include <string>

namespace numsan {
namespace {

void* found_there = nullptr;

const char* ours() { return "ours"; }

TEST(ImportTable, CallsOfAnotherBinaryGoToOursAndItsOwnIsKept) {
    const std::string before = gnu_get_libc_version();
    const ReplacedImport import{"gnu_get_libc_version", reinterpret_cast<void*>(&ours), &found_there};
    for (int turn = 0; turn < 2; ++turn) {
        replace_imports(&import, 1);
        EXPECT_STREQ(gnu_get_libc_version(), "ours");
        ASSERT_NE(found_there, nullptr);
        ASSERT_NE(found_there, import.ours) << "ours is not taken for theirs, though it stands in their place";
        EXPECT_EQ(reinterpret_cast<const char* (*)()>(found_there)(), before);
    }
    void* none = nullptr;
    const ReplacedImport back{"gnu_get_libc_version", found_there, &none};
    replace_imports(&back, 1);
    EXPECT_EQ(gnu_get_libc_version(), before);
}

TEST(ImportTable, WhatNobodyImportsIsLeftAlone) {
    void* none = nullptr;
    const ReplacedImport import{"a_function_of_no_library", reinterpret_cast<void*>(&ours), &none};
    replace_imports(&import, 1);
    EXPECT_EQ(none, nullptr);
}

}  // namespace
}  // namespace numsan
