// Whether functions that numsan writes down are called as those of a library's headers.
#pragma once

#include <type_traits>

namespace layout_check {

/// Arguments go the same way: pointers as pointers, integers and enumerations by their sizes.
template <class Ours, class Theirs>
constexpr bool passes_alike() {
    return sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;
}
template <class Ours, class Theirs>
struct Same;
template <class Result, class... Ours, class Status, class... Theirs>
struct Same<Result(Ours...), Status(Theirs...)> {
    static constexpr bool check() {
        if constexpr (sizeof...(Ours) != sizeof...(Theirs))
            return false;
        else
            return passes_alike<Result, Status>() && (passes_alike<Ours, Theirs>() && ...);
    }
};

}  // namespace layout_check
