// How large each parameter was before training changed it and how large it is now: distinguishes divergence from
// structure.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>

#include "host/base/atomic_record.h"
#include "host/base/thresholds.h"

namespace numsan {

struct ParameterGrowth {
    double times = 0;             ///< magnitude now over magnitude when training began; 0: none is known
    double now = 0;               ///< magnitude of that parameter
    double largest_start = 0;     ///< of all parameters, when training began
    bool from_near_zero = false;  ///< it began below kSmallStart times that: `times` counts from there
};

/// [MT] Direct-mapped by identity of the tensor: it may forget, it never invents.
class ParameterHistory {
  public:
    ParameterHistory() : entries_(std::make_unique<AtomicRecord<Entry>[]>(kSlots)) {}

    /// A parameter was written; `absmax` is its largest finite magnitude after it. What is not an update (`updated`
    /// false) initialises it. `before`: its magnitude before this write, called where none was seen.
    template <class Before>
    void add(const void* impl, double absmax, bool updated, Before before) noexcept {
        if (!(absmax >= 0)) return;
        AtomicRecord<Entry>& kept = entries_[slot(impl)];
        Entry entry;
        if (!kept.load(entry) || entry.impl != impl) entry = {impl, updated ? before() : absmax, 0, false};
        if (!updated) entry.start = absmax;
        // An update to zeros says nothing of its size; an initialiser that writes zeros does.
        if (absmax > 0 || !updated) entry.now = absmax;
        entry.updated = updated;
        kept.store(entry);
        if (!any_.load(std::memory_order_relaxed)) any_.store(true, std::memory_order_relaxed);
    }

    /// Whether training has changed it.
    bool is_updated(const void* impl) const noexcept {
        Entry entry;
        return entries_[slot(impl)].load(entry) && entry.impl == impl && entry.updated;
    }

    /// Largest magnitude that a parameter had before training changed it, 0 when none was written.
    double largest_start() const noexcept {
        double most = 0;
        each([&](const Entry& entry) { most = std::max(most, entry.start); });
        return most;
    }

    /// Largest growth over all parameters. One that starts at zero, or far below the others
    /// (a bias, the second factor of a low-rank adapter, a scale of a layer), is meant to become as large as they are:
    /// it grows from kSmallStart times the largest start. Where all start at zero, nothing is said.
    ParameterGrowth growth() const noexcept {
        ParameterGrowth most;
        most.largest_start = largest_start();
        const double least = kSmallStart * most.largest_start;
        if (least <= 0) return most;
        each([&](const Entry& entry) {
            const double times = entry.now / std::max(entry.start, least);
            if (times > most.times) most = {times, entry.now, most.largest_start, entry.start < least};
        });
        return most;
    }

  private:
    struct Entry {
        const void* impl = nullptr;
        double start = 0;  ///< before training changed it
        double now = 0;
        bool updated = false;
    };
    template <class Visit>
    void each(Visit visit) const {
        if (!any_.load(std::memory_order_relaxed)) return;  // births without training may be many
        Entry entry;
        for (size_t i = 0; i < kSlots; ++i) {
            if (entries_[i].load(entry) && entry.impl != nullptr) visit(entry);
        }
    }

    static constexpr size_t kSlots = 2048;
    static size_t slot(const void* impl) noexcept {
        const auto bits = reinterpret_cast<uintptr_t>(impl);
        return ((bits >> 4) ^ (bits >> 15)) % kSlots;
    }
    std::unique_ptr<AtomicRecord<Entry>[]> entries_;
    std::atomic<bool> any_{false};  ///< one was added
};

}  // namespace numsan
