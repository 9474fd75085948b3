// One call of a library, from before it to after it.
#pragma once

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
        begin();
        const int status = theirs();
        end(status == 0);
        return status;
    }

    LibraryCall call{};  ///< to be described before it is made

  private:
    void begin() noexcept;
    void end(bool made) noexcept;

    LibraryListener* listener_;
};

}  // namespace numsan
