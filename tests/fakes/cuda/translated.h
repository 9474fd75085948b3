// Kernels of a program that nvcc compiled, which the fake driver runs as C++: a library of them, made of their PTX
// (tests/programs_cuda/CMakeLists.txt).
#pragma once

#include <string>

#include "tests/cuda/ptx/machine.h"
#include "tests/fakes/cuda/internal.h"

namespace fake_cuda {

/// What such a library exports, under this name and type.
inline constexpr char kTranslatedRun[] = "numsan_ptx_run";
using TranslatedRun = void (*)(const numsan::ptx::Launch* launch, std::string* fault);
inline constexpr char kTranslatedKernels[] = "numsan_ptx_kernels";
using TranslatedKernels = const void* (*)();  ///< to a std::vector<numsan::ptx::Kernel>

/// As FAKE_CUDA says, "kernels=PATH". It is loaded when a kernel of it is asked for.
void use_translated(const std::string& path);
/// Null: there is no such kernel.
const numsan::ptx::Kernel* translated_kernel(const std::string& name);
/// Copies the arguments. Of a kernel that does what none may do stderr tells, and the context is of no use after it.
Work translated_launch(const numsan::ptx::Kernel& kernel, CUcontext context, numsan::ptx::Dim3 blocks,
                       numsan::ptx::Dim3 threads, void** arguments);

}  // namespace fake_cuda
