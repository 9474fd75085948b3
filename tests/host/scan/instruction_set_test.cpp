// The choice of clones. NUMSAN_TEST_INSTRUCTION_SET makes all tests of this program use a narrower one than the widest:
// tests/CMakeLists.txt runs the scanner's with each.
#include "host/scan/instruction_set.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace numsan {
namespace {

constexpr int kSkipped = 77;

/// Ends the program with a reason where the wanted set is none that it could run.
class ChosenInstructionSet : public testing::Environment {
  public:
    void SetUp() override {
        const char* wanted = std::getenv("NUMSAN_TEST_INSTRUCTION_SET");
        if (wanted == nullptr) return;
        for (const InstructionSet set : kInstructionSets) {
            if (std::string(wanted) != name_of(set)) continue;
            if (set > widest_instruction_set()) {
                std::printf("skipped: this processor has no %s, its widest is %s\n", wanted,
                            name_of(widest_instruction_set()));
                std::exit(kSkipped);
            }
            instruction_set_in_use = set;
            return;
        }
        FAIL() << "no instruction set is called " << wanted;
    }
};

const auto* const chosen = testing::AddGlobalTestEnvironment(new ChosenInstructionSet);

/// The flags of the first processor, as the system has them.
std::string flags() {
    std::ifstream file("/proc/cpuinfo");
    std::string line;
    while (std::getline(file, line)) {
        if (line.starts_with("flags")) return line + " ";
    }
    return "";
}

TEST(InstructionSet, WidestIsWhatTheSystemNames) {
    const std::string has = flags();
    if (has.empty()) GTEST_SKIP() << "/proc/cpuinfo names no flags here";
    InstructionSet expected = InstructionSet::Baseline;
    if (has.find(" avx2 ") != std::string::npos) expected = InstructionSet::Avx2;
    bool all = true;
    for (const char* flag : {" avx512f ", " avx512bw ", " avx512cd ", " avx512dq ", " avx512vl "}) {
        all = all && has.find(flag) != std::string::npos;
    }
    if (all) expected = InstructionSet::Avx512;
    EXPECT_STREQ(name_of(widest_instruction_set()), name_of(expected));
}

TEST(InstructionSet, WidestIsUsedUnlessATestAsksForLess) {
    const char* wanted = std::getenv("NUMSAN_TEST_INSTRUCTION_SET");
    EXPECT_STREQ(name_of(instruction_set_in_use), wanted ? wanted : name_of(widest_instruction_set()));
}

}  // namespace
}  // namespace numsan
