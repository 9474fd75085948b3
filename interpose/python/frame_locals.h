// Local variables of a frame, read where they lie.
#pragma once

#include "interpose/python/layout.h"

namespace numsan {

/// A new reference to a Python function locals_of(frame, names): a list of (name, value) for the variables that have a
/// value. `names` are all of the frame's code, in the order of its slots. Empty where the frame is not laid out as
/// `layout` has it, which may be null and outlives the function. Null without memory; the caller holds the
/// interpreter's lock.
///
/// `frame.f_locals` would do up to 3.12 only what a debugger may: it fills a dictionary that belongs to the frame, and
/// after each call of a trace or profile function the frame's variables are set to what that dictionary holds.
void* frame_locals_function(const PythonApi& api, const PythonLayout* layout);

}  // namespace numsan
