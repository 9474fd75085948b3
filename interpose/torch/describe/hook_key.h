// The dispatch key on which the hook's kernels are.
#pragma once

#include <c10/core/DispatchKey.h>

namespace numsan {

/// Undefined in a torch without DispatchKey::Fake, which no library of torch's own uses.
template <class Key>
constexpr Key find_hook_key() {
    if constexpr (requires { Key::Fake; }) {
        return Key::Fake;
    } else {
        return Key::Undefined;
    }
}
inline constexpr auto kHookKey = find_hook_key<c10::DispatchKey>();

}  // namespace numsan
