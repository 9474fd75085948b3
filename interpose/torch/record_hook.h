// Sees every operator through at::RecordFunction, where the dispatch key is not to be had. Above autograd, and called
// for composite, view and inner ops too, which are left out here: slower than the dispatch hook, and the same events.
#pragma once

namespace numsan {

/// Adds a callback for all threads. May throw.
void install_record_hook();

}  // namespace numsan
