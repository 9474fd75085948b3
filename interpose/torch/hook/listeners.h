// Our record function callbacks, and how to keep them from changing what the program's own code does.
#pragma once

#include <ATen/record_function.h>

#include <optional>

namespace numsan {

/// Callbacks that begin with `start` are ours: of libraries that listen, they are none.
void note_as_ours(at::RecordFunctionCallback::StartCallback start);

/// Registers a callback for as long as the process lives.
void listen(const at::RecordFunctionCallback& callback);

/// A callback of the calling thread alone, while it lives. The same callback may be listened to before: those of one
/// start function are ours once.
class ScopedListener {
  public:
    explicit ScopedListener(const at::RecordFunctionCallback& callback);
    ~ScopedListener();
    ScopedListener(const ScopedListener&) = delete;
    ScopedListener& operator=(const ScopedListener&) = delete;

  private:
    at::CallbackHandle handle_;
};

/// While it lives, record functions of this thread are not active, unless another library listens to them. For
/// collectives: their work keeps the operands in an active record function until a thread of the process group drops
/// it, which may be after the interpreter has ended, and ends the process then.
class QuietScopes {
  public:
    explicit QuietScopes(bool wanted);

  private:
    std::optional<at::RecordFunctionGuard> guard_;
};

}  // namespace numsan
