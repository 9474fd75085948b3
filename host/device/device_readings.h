// What is known of tensors in a device's memory: the results of scans. Answers for a scanner where events of the past
// are judged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "host/base/scanner.h"

namespace numsan {

/// What storages in a device's memory are called in events that are judged late. Does it twice as once.
inline const void* device_storage(const void* storage) noexcept {
    return reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(storage) | 1);
}

/// Tensors of the host are read, except those of the event that is being judged, which were read when it happened.
/// Scanner's members [MT]; the others: one thread at a time.
class DeviceReadings final : public Scanner {
  public:
    /// `host` reads host memory, and outlives this.
    explicit DeviceReadings(const Scanner& host) : host_(host) {}

    Range range(const TensorView& tensor) const noexcept override;
    Range shared_range(const TensorView& tensor, ShareWork share) const noexcept override {
        return host_.shared_range(tensor, share);
    }
    KindSet kinds(const TensorView& tensor) const noexcept override;
    Health health(const TensorView& tensor) const noexcept override;
    /// Of what is judged late the values are gone.
    ExponentCounts exponents(const TensorView& tensor) const noexcept override {
        return tensor.device == Device::Cpu && find(tensor) == nullptr ? host_.exponents(tensor) : ExponentCounts{};
    }
    bool measures(const TensorView& tensor) const noexcept override;

    /// Until end() this thread judges an event: only it may ask for a device's tensors.
    void begin() noexcept;
    /// A tensor of the event that is being judged. `view` stays until end(). Throws std::bad_alloc.
    void add(const TensorView& view, const Range& range, const Health* health);
    /// The ledger knows births in its storage, but not whether they are among its elements: all kinds may be.
    void add_unknown(const TensorView& view);
    void end() noexcept;

    /// `view` was written and read; what was known of its storage is over. Throws std::bad_alloc.
    void wrote(const TensorView& view, const Range& range, const Health* health);
    /// It was written with values that are not known.
    void forget(const void* storage) noexcept { last_.erase(storage); }

    /// Whether something is known of exactly these elements: as operand of the event, or as they were written last.
    bool knows(const TensorView& view) const noexcept { return find(view) != nullptr; }

  private:
    struct Reading {
        const TensorView* view;
        const void* data;
        const void* impl;
        const int64_t* sizes;  ///< an address: the view's own, and that of its copies
        int64_t extent;        ///< elements from the first to the last one in memory
        int64_t numel;
        DType dtype;
        bool unknown;
        bool measured;
        Range range;
        Health health;
    };
    /// Storages that are remembered; then all of them are forgotten.
    static constexpr size_t kMaxStorages = 1 << 14;
    static constexpr size_t kShort = 32;  ///< readings of an event that are looked through one by one

    static Reading reading_of(const TensorView& view, const Range& range, const Health* health);
    const Reading* find(const TensorView& view) const noexcept;
    const Reading* find_in_event(const TensorView& view) const noexcept;
    void keep(const Reading& reading);

    const Scanner& host_;
    std::vector<Reading> event_;
    std::unordered_multimap<const void*, size_t> by_data_;  ///< into event_, once that is long
    std::unordered_map<const void*, Reading> last_;         ///< by storage
};

}  // namespace numsan
