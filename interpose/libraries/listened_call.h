// One call of a library, from before it to after it.
#pragma once

#include <cstddef>

#include "interpose/libraries/library_listener.h"

namespace numsan {

/// Made where the library's function is called. The outermost of a thread is described, and the listener told.
class ListenedCall {
  public:
    /// Who is told from now on; null: nobody. [MT]
    static void listen(LibraryListener* listener) noexcept;
    /// The calling thread is inside one that was told of.
    static bool is_open() noexcept;

    ListenedCall() noexcept;

    /// False: nobody listens, or it is part of another call.
    explicit operator bool() const noexcept { return listener_ != nullptr; }

    /// Makes the call; `theirs` returns the library's status, 0 where it was accepted.
    template <class Theirs>
    int make(Theirs theirs) {
        begin(&call, 1);
        const int status = theirs();
        end(&call, 1, status == 0);
        return status;
    }

    /// The same, but nobody is told: the library will make it later.
    template <class Theirs>
    static int make_untold(Theirs theirs) {
        set_open(true);
        const int status = theirs();
        set_open(false);
        return status;
    }
    /// The library makes several at once, all of which were described.
    template <class Theirs>
    static int make_all(LibraryCall* calls, size_t count, Theirs theirs) {
        const ListenedCall listened;
        if (!listened) return theirs();
        listened.begin(calls, count);
        const int status = theirs();
        listened.end(calls, count, status == 0);
        return status;
    }

    LibraryCall call{};  ///< to be described before it is made

  private:
    static void set_open(bool now) noexcept;
    void begin(LibraryCall* calls, size_t count) const noexcept;
    void end(LibraryCall* calls, size_t count, bool made) const noexcept;

    LibraryListener* listener_;
};

}  // namespace numsan
