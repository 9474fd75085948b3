// A library of a program's translated kernels, which the fake driver loads (tests/fakes/cuda/translated.h).
#include <string>
#include <vector>

#include "tests/cuda/ptx/machine.h"

namespace numsan::ptx::NUMSAN_PTX_PROGRAM {
extern const std::vector<Kernel> kernels;
}

#pragma GCC visibility push(default)
extern "C" {
const void* numsan_ptx_kernels() { return &numsan::ptx::NUMSAN_PTX_PROGRAM::kernels; }
void numsan_ptx_run(const numsan::ptx::Launch* launch, std::string* fault) { *fault = run(*launch); }
}
#pragma GCC visibility pop
