// Calls of CUDA's libraries by a program without a framework, by what they are given: where numsan begins to hear of
// them.
#pragma once

#include "interpose/libraries/library_listener.h"

namespace numsan {

/// From now on `listener`, which lives for ever, hears of the outermost calls that binaries make which the process has
/// now. Once. Throws std::bad_alloc.
void hear_library_calls(LibraryListener& listener);
/// It hears of nothing from now on, but for what is under way.
void end_library_calls() noexcept;

/// The calling thread is inside a call that is heard of: what is launched is part of it.
bool inside_library_call() noexcept;

}  // namespace numsan
