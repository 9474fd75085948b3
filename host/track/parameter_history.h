// How large each parameter was when it was first written and how large it is now: distinguishes divergence from
// structure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

#include "host/base/atomic_record.h"

namespace numsan {

/// [MT] Direct-mapped by identity of the tensor: it may forget, it never invents.
class ParameterHistory {
  public:
    ParameterHistory() : entries_(std::make_unique<AtomicRecord<Entry>[]>(kSlots)) {}

    /// A parameter was written; `absmax` is its largest finite magnitude after it. Zeros say nothing about its scale.
    /// What is not an update (`updated` false) initialises it: such a write counts as the first.
    [[gnu::noinline]] void add(const void* impl, double absmax, bool updated) noexcept {
        if (!(absmax > 0)) return;
        AtomicRecord<Entry>& kept = entries_[slot(impl)];
        Entry entry;
        if (!updated || !kept.load(entry) || entry.impl != impl) entry = {impl, absmax, absmax};
        entry.now = absmax;
        entry.updated = updated;
        kept.store(entry);
    }

    /// Whether training has changed it.
    bool is_updated(const void* impl) const noexcept {
        Entry entry;
        return entries_[slot(impl)].load(entry) && entry.impl == impl && entry.updated;
    }

    /// Largest magnitude that a parameter had before training changed it, 0 when none was written.
    double largest_start() const noexcept {
        double most = 0;
        Entry entry;
        for (size_t i = 0; i < kSlots; ++i) {
            if (entries_[i].load(entry) && entry.impl != nullptr) most = std::max(most, entry.first);
        }
        return most;
    }

    /// Largest growth over all parameters, 0 when none was written.
    double growth() const noexcept {
        double most = 0;
        Entry entry;
        for (size_t i = 0; i < kSlots; ++i) {
            if (entries_[i].load(entry) && entry.impl != nullptr) most = std::max(most, entry.now / entry.first);
        }
        return most;
    }

  private:
    struct Entry {
        const void* impl = nullptr;
        double first = 0;
        double now = 0;
        bool updated = false;
    };
    static constexpr size_t kSlots = 2048;
    static size_t slot(const void* impl) noexcept {
        const auto bits = reinterpret_cast<uintptr_t>(impl);
        return ((bits >> 4) ^ (bits >> 15)) % kSlots;
    }
    std::unique_ptr<AtomicRecord<Entry>[]> entries_;
};

}  // namespace numsan
