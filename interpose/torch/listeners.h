// Our record function callbacks, and how to keep them from changing what the program's own code does.
#pragma once

#include <ATen/record_function.h>

#include <optional>

namespace numsan {

/// Registers a callback for as long as the process lives.
void listen(const at::RecordFunctionCallback& callback);

/// While it lives, record functions of this thread are not active, unless somebody but us listens to them. For
/// collectives: their work keeps the operands in an active record function until a thread of the process group drops
/// it, which may be after the interpreter has ended, and ends the process then.
class QuietScopes {
  public:
    explicit QuietScopes(bool wanted);

  private:
    std::optional<at::RecordFunctionGuard> guard_;
};

}  // namespace numsan
