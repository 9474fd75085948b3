// Python objects that are alive, by type.
#pragma once

#include "interpose/python/api/api.h"

namespace numsan {

/// A new reference to a Python function alive(*types): a list of the objects whose type is one of `types` or derives
/// from it, of those that the garbage collector knows, oldest generation first. Null without memory; the caller holds
/// the interpreter's lock.
///
/// The collector knows objects before they are complete. Who builds a tuple must be its only owner until it is filled
/// (PyTuple_SetItem, _PyTuple_Resize), and may let other threads run meanwhile: so nothing but what is asked for is
/// held while another thread can run, which no Python code could see to. A build without the lock has no such moment:
/// there the list is empty.
void* live_objects_function(const PythonApi& api);

}  // namespace numsan
