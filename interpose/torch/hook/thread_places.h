// Where torch keeps what the hook asks of a thread for every op: one look-up of thread-local memory in place of three.
#pragma once

#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdint>

namespace numsan {

/// They lie where they lie for as long as the thread lives. Trivially destructible: ops run to a thread's very end.
class ThreadPlaces {
  public:
    /// The calling thread's.
    static ThreadPlaces& mine() noexcept {
        static thread_local constinit ThreadPlaces places;
        if (places.keys_ == nullptr) [[unlikely]]
            places.find();
        return places;
    }

    c10::impl::PODLocalDispatchKeySet& keys() const noexcept { return *keys_; }
    bool grad_enabled() const noexcept { return autograd_->get_grad_mode(); }
    /// torch's number of the thread, which it gives to threads in the order in which they first ask.
    uint64_t number() noexcept {
        if (number_ == 0) [[unlikely]]
            number_ = at::RecordFunction::currentThreadId();
        return number_;
    }

  private:
    [[gnu::noinline, gnu::cold]] void find() noexcept {
        autograd_ = &c10::AutogradState::get_tls_state();
        keys_ = &c10::impl::raw_local_dispatch_key_set;
    }

    c10::impl::PODLocalDispatchKeySet* keys_ = nullptr;
    const c10::AutogradState* autograd_ = nullptr;
    uint64_t number_ = 0;
};

}  // namespace numsan
