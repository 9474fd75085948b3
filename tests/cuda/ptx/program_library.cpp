// Of a library of translated kernels, how the fake driver runs them (tests/fakes/cuda/translated.h).
#include <string>

#include "tests/cuda/ptx/machine.h"

extern "C" void numsan_ptx_run(const numsan::ptx::Launch* launch, std::string* fault) { *fault = run(*launch); }
