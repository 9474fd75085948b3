// Buffers of one thread, handed on to a later thread when theirs ends: a server with a thread a request must not grow.
#pragma once

#include <atomic>

namespace numsan {

/// T is default-constructible, has `bool idle() const noexcept`, which says that no call uses it, and `T* next`. Spares
/// lie in a list without a lock: a forked child may find it at any moment. Never freed.
template <class T>
class ThreadBuffers {
  public:
    /// The calling thread's. Throws std::bad_alloc.
    static T& mine() {
        if (t_mine == nullptr) t_mine = acquire();
        return *t_mine;
    }

  private:
    /// Runs among the destructors of the host program. Operators that are called in those after it take another buffer,
    /// which is lost.
    struct AtThreadEnd {
        bool armed = false;
        ~AtThreadEnd() {
            T* done = t_mine;
            t_mine = nullptr;
            if (done != nullptr && done->idle()) put_back(done, done);
        }
    };

    static T* acquire() {
        t_end.armed = true;  // first use: arranges for the destructor
        // All of them: a head that were taken alone might be another that lies at the same address.
        T* spares = g_spares.exchange(nullptr, std::memory_order_acquire);
        if (spares == nullptr) return new T;
        if (T* rest = spares->next) {
            T* last = rest;
            while (last->next != nullptr) last = last->next;
            put_back(rest, last);
        }
        spares->next = nullptr;
        return spares;
    }

    static void put_back(T* first, T* last) noexcept {
        T* head = g_spares.load(std::memory_order_relaxed);
        do {
            last->next = head;
        } while (!g_spares.compare_exchange_weak(head, first, std::memory_order_release, std::memory_order_relaxed));
    }

    static inline std::atomic<T*> g_spares{nullptr};
    static inline thread_local T* t_mine = nullptr;
    static inline thread_local AtThreadEnd t_end;
};

}  // namespace numsan
