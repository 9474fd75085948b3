// Who hears of calls of CUDA's libraries.
#pragma once

#include "host/kernels/library_call.h"

namespace numsan {

/// Hears of them on the thread that calls. Nothing throws. [MT]
class LibraryListener {
  public:
    /// `call` is about to be made.
    virtual void before_call(LibraryCall& call) noexcept = 0;
    /// The same one; `made`: the library accepted it.
    virtual void after_call(LibraryCall& call, bool made) noexcept = 0;

  protected:
    ~LibraryListener() = default;
};

}  // namespace numsan
