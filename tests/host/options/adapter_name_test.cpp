// Files of adapters: their names, and the versions of torch that a folder has some for.
#include "host/options/adapter_name.h"

#include <gtest/gtest.h>

#include "tests/support/builders.h"

namespace numsan {
namespace {

constexpr char kBuild[] = "0123456789abcdef", kOtherBuild[] = "00000000000000ff", kTorch[] = "fedcba9876543210";

TEST(AdapterName, HasTheVersionAndNothingThatIsNoPartOfAFileName) {
    EXPECT_EQ(adapter_name("2.11.0+cpu", kBuild, kTorch),
              "libnumsan_torch-2.11.0+cpu-0123456789abcdef-fedcba9876543210.so");
    EXPECT_EQ(adapter_name("2/../x y", kBuild, kTorch),
              "libnumsan_torch-2_.._x_y-0123456789abcdef-fedcba9876543210.so");
}

TEST(AdapterName, VersionsOfAFolderAreInOrderAndEachOnce) {
    const testing::ScratchFolder folder;
    for (const char* version : {"2.11.0", "2.9.1+cpu", "2.10.0-rc1"}) {
        std::ofstream(folder.file(adapter_name(version, kBuild, kTorch)));
        std::ofstream(folder.file(adapter_name(version, kOtherBuild, kTorch)));
    }
    for (const char* other : {"libnumsan_torch-.so", "libnumsan_torch-2.8.0-short.so", "libnumsan.so", "x"})
        std::ofstream(folder.file(other));
    EXPECT_EQ(torches_of_adapters(folder.path().string()),
              (std::vector<std::string>{"2.9.1+cpu", "2.10.0-rc1", "2.11.0"}));
    EXPECT_TRUE(torches_of_adapters(folder.file("none")).empty());
}

}  // namespace
}  // namespace numsan
