// What the scanner knows of the calling thread.
#pragma once

#include <cstdint>
#include <utility>

namespace numsan::gpu {

class Lane;

// What a thread did last. Plain data: it outlives every destructor of the thread.
struct ThreadState {
    uint64_t scanner;
    Lane* lane;
    bool inside;  // a driver callback may come back to us
};
inline constinit thread_local ThreadState thread_state{};

/// False in a call that came back to us inside another one of the thread.
class Inside {
  public:
    Inside() : first_(!thread_state.inside) { thread_state.inside = true; }
    ~Inside() {
        if (first_) thread_state.inside = false;
    }
    explicit operator bool() const { return first_; }

  private:
    bool first_;
};

/// A part of a call that may come back to us: it runs the program's code.
class Outside {
  public:
    Outside() : inside_(std::exchange(thread_state.inside, false)) {}
    ~Outside() { thread_state.inside = inside_; }
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;

  private:
    const bool inside_;
};

}  // namespace numsan::gpu
