// Every kept input through its fuzz target: what a fuzzer once found stays mended, without a fuzzer.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>

#include "tests/fuzz/targets.h"

namespace numsan::fuzz {
namespace {

namespace fs = std::filesystem;

struct Target {
    const char* name;
    void (*run)(std::string_view);
};

void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

constexpr Target kTargets[] = {
#define NUMSAN_FUZZ_TARGET(name) {#name, fuzz_##name},
#include "tests/fuzz/targets.def"
#undef NUMSAN_FUZZ_TARGET
};

fs::path corpus() { return fs::path(NUMSAN_SOURCE_DIR) / "tests/fuzz/corpus"; }

class FuzzCorpus : public ::testing::TestWithParam<Target> {};

TEST_P(FuzzCorpus, EveryInputKeepsThePromises) {
    const Target& target = GetParam();
    EXPECT_NO_THROW(target.run(""));
    int inputs = 0;
    for (const auto& entry : fs::directory_iterator(corpus() / target.name)) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string input((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        EXPECT_FALSE(input.empty()) << entry.path();
        EXPECT_NO_THROW(target.run(input)) << entry.path();
        ++inputs;
    }
    EXPECT_GT(inputs, 0);
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzCorpus, ::testing::ValuesIn(kTargets),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace numsan::fuzz
