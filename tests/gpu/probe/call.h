// A call of the driver's that has to succeed, and the error that it ends a phase with.
#pragma once

#include <stdexcept>
#include <string>

#include "tests/gpu/gpu.h"

namespace numsan::gpu::probe {

/// A driver call that failed.
struct CallFailed : std::runtime_error {
    CallFailed(const std::string& name, CUresult r)
        : std::runtime_error(name + ": " + gpu().text_of(r)), call(name), result(r) {}
    const std::string call;
    const CUresult result;
};

/// Something else that is not as it has to be.
struct Wrong : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline void check(const char* call, CUresult result) {
    if (result != CUDA_SUCCESS) throw CallFailed(call, result);
}

}  // namespace numsan::gpu::probe
