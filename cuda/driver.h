// The CUDA driver, found at run time: nothing links libcuda or the CUDA runtime.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstddef>

namespace numsan::gpu {

/// CUDA version of the oldest driver that the kernels run on: parameters above 4 KB, context ids.
inline constexpr int kOldestDriver = 12010;

/// The calls of driver_calls.def; all set but the optional ones, or the driver is not to be used.
struct Driver {
    int version = 0;  ///< of CUDA, as the driver reports it: 12010 is 12.1
#define NUMSAN_DRIVER_CALL(field, name, version) PFN_##name##_v##version field = nullptr;
#define NUMSAN_OPTIONAL_DRIVER_CALL NUMSAN_DRIVER_CALL
#include "cuda/driver_calls.def"
#undef NUMSAN_OPTIONAL_DRIVER_CALL
#undef NUMSAN_DRIVER_CALL
};

/// Finds the calls in `library`: the one that the process has, else it is loaded, for good. False: `reason` says in one
/// line why the driver cannot be used. Does not initialise CUDA.
bool load_driver(const char* library, Driver& driver, char* reason, size_t reason_size) noexcept;

/// "CUDA_ERROR_OUT_OF_MEMORY", or "CUDA error 1234" when the driver has no name for it.
void name_error(const Driver& driver, CUresult result, char* text, size_t size) noexcept;

/// Makes a context current for a scope; nothing when it is already.
class ContextScope {
  public:
    ContextScope(const Driver& driver, CUcontext context) noexcept;
    ~ContextScope();
    ContextScope(const ContextScope&) = delete;
    ContextScope& operator=(const ContextScope&) = delete;

    CUresult result() const { return result_; }

  private:
    const Driver& driver_;
    bool pushed_ = false;
    CUresult result_;
};

/// Calls that allocate or wait are forbidden while any thread captures in global mode; relaxed, for a scope, they are
/// this thread's affair.
class RelaxedCapture {
  public:
    explicit RelaxedCapture(const Driver& driver) : driver_(driver) { result_ = driver_.exchange_capture_mode(&mode_); }
    ~RelaxedCapture() {
        if (result_ == CUDA_SUCCESS) driver_.exchange_capture_mode(&mode_);
    }
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;
    CUresult result() const { return result_; }

  private:
    const Driver& driver_;
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult result_;
};

}  // namespace numsan::gpu
