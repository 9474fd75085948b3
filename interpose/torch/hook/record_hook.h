// Sees every operator through at::RecordFunction, where the dispatch key is not to be had: in all of a process, or
// inside the calls of a tensor subclass. Above autograd, and called for composite, view and inner ops too, which are
// left out here: slower than the dispatch hook, and the same events.
#pragma once

#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>

#include "interpose/torch/hook/listeners.h"

namespace numsan {

/// Whether an operator called with these keys is handed to the __torch_dispatch__ of an operand's class, which computes
/// with tensors that it keeps. (A mode's is on every call's keys, and its results are plain tensors.)
inline bool is_for_subclass(c10::DispatchKeySet keys) {
    return keys.has(c10::DispatchKey::Python) &&
           !c10::impl::tls_local_dispatch_key_set().included_.has(c10::DispatchKey::Python);
}

/// While it lives, ops that a subclass's __torch_dispatch__ calls on this thread are events. torch excludes our key
/// from them.
class SubclassCalls {
  public:
    explicit SubclassCalls(bool wanted) {
        if (wanted) begin();
    }
    ~SubclassCalls() {
        if (listener_.has_value()) end();
    }
    SubclassCalls(const SubclassCalls&) = delete;
    SubclassCalls& operator=(const SubclassCalls&) = delete;

  private:
    void begin();
    void end();

    std::optional<ScopedListener> listener_;
};

/// Adds a callback for all threads. May throw.
void install_record_hook();

}  // namespace numsan
