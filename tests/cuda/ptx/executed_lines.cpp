// For mutants.py: with NUMSAN_PTX_LINES=FILE a line of FILE says of each test how long it took and which lines of the
// PTX it got to. NUMSAN_PTX is then a library of what translate.py --count made.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>

namespace {

class ExecutedLines : public testing::EmptyTestEventListener {
  public:
    explicit ExecutedLines(const char* file) : out_(file) {}

  private:
    void OnTestEnd(const testing::TestInfo& test) override {
        void* const library = dlopen(std::getenv("NUMSAN_PTX"), RTLD_NOW);
        auto* const executed = static_cast<uint64_t*>(dlsym(library, "mutant_executed"));
        const auto* const lines = static_cast<const size_t*>(dlsym(library, "mutant_lines"));
        if (executed == nullptr || lines == nullptr) std::abort();
        out_ << test.test_suite_name() << '.' << test.name() << ' ' << test.result()->elapsed_time();
        for (size_t line = 0; line < *lines; ++line) {
            if (executed[line] != 0) out_ << ' ' << line;
        }
        out_ << std::endl;
        std::fill_n(executed, *lines, uint64_t(0));
    }

    std::ofstream out_;
};

const bool listens = [] {
    if (const char* const file = std::getenv("NUMSAN_PTX_LINES"))
        testing::UnitTest::GetInstance()->listeners().Append(new ExecutedLines(file));
    return true;
}();

}  // namespace
