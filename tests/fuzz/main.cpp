// One target as a libFuzzer program.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    numsan::fuzz::NUMSAN_FUZZ_FUNCTION(std::string_view(reinterpret_cast<const char*>(data), size));
    return 0;
}
