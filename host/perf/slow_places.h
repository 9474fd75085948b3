// What one thread lost where: time and calls by cause and line, in a table of constant size.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/finding/slow/slow_run.h"
#include "host/perf/last_steps.h"
#include "host/stacks/stack_source.h"

namespace numsan {

/// Written by one thread, read by any. No lock, no allocation. What finds no room is not counted.
class SlowPlaces {
  public:
    /// `ns` and `count` of a step: medians.
    struct Cost {
        int64_t ns = 0;
        int64_t count = 0;
        const OpInfo* op = nullptr;  ///< the first
        bool taken_back = false;     ///< what was taken for a loss is none
    };

    /// `step` does not fall; `ns` of one call, or of `count` together. True: a new place.
    bool add(SlowCause cause, StackId stack, const OpInfo* op, int64_t step, int64_t ns, int64_t count = 1) noexcept {
        bool fresh = false;
        Place* place = find(key_of(cause, stack), op, fresh);
        if (place == nullptr) return false;
        place->ns.add(step, ns);
        place->count.add(step, count);
        return fresh;
    }

    /// What was counted there, and what will be, counts for nothing.
    void take_back(SlowCause cause, StackId stack) noexcept {
        bool fresh = false;
        if (Place* place = find(key_of(cause, stack), nullptr, fresh))
            place->taken_back.store(true, std::memory_order_relaxed);
    }

    /// Calls visit(cause, stack, cost) for each place, of the steps before `end`. Any thread.
    template <class Visit>
    void each(int64_t end, Visit&& visit) const {
        for (const Place& place : places_) {
            const uint64_t key = place.key.load(std::memory_order_acquire);
            if (key == 0) continue;
            const Cost cost{place.ns.median(end), place.count.median(end), place.op.load(std::memory_order_relaxed),
                            place.taken_back.load(std::memory_order_relaxed)};
            visit(static_cast<SlowCause>((key >> 32) - 1), static_cast<StackId>(key), cost);
        }
    }

  private:
    static constexpr size_t kPlaces = 256;
    static constexpr size_t kProbes = 16;

    struct Place {
        std::atomic<uint64_t> key{0};
        std::atomic<const OpInfo*> op{nullptr};
        std::atomic<bool> taken_back{false};
        LastSteps ns;
        LastSteps count;
    };

    static uint64_t key_of(SlowCause cause, StackId stack) noexcept {
        return (static_cast<uint64_t>(cause) + 1) << 32 | stack;
    }

    Place* find(uint64_t key, const OpInfo* op, bool& fresh) noexcept {
        const size_t home = (key * 0x9E3779B97F4A7C15u) >> 32;
        for (size_t i = 0; i < kProbes; ++i) {
            Place& place = places_[(home + i) % kPlaces];
            const uint64_t there = place.key.load(std::memory_order_relaxed);
            if (there == key) return &place;
            if (there != 0) continue;
            place.op.store(op, std::memory_order_relaxed);
            place.key.store(key, std::memory_order_release);
            fresh = true;
            return &place;
        }
        return nullptr;
    }

    std::array<Place, kPlaces> places_{};
};

}  // namespace numsan
