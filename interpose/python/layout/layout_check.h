// Whether a layout is the running interpreter's: what is read by it against what the public API says.
#pragma once

#include "interpose/python/layout/layout.h"

namespace numsan {

/// True when every offset of `layout` was seen to agree: on the calling thread's own frames, if it has some, and on
/// frames made for it on a thread of ours, where the first argument, its cell, owners and names of every width are
/// known. A wrong layout is harmless: no address is read before the kernel says that it can be. Takes the
/// interpreter's lock; the calling thread may hold it, and loses it meanwhile.
bool layout_agrees(const PythonApi& api, const PythonLayout& layout);

}  // namespace numsan
