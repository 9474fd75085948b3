#include "host/device/device_readings.h"

#include <algorithm>

#include "host/base/value_classes.h"
#include "host/cause/measure.h"

namespace numsan {
namespace {

constexpr KindSet kAllKinds = kNaN | kAnyInf;

thread_local constinit const DeviceReadings* judging = nullptr;

/// How far its last element is from its first: the same for a transposed view, not for every second element.
int64_t extent_of(const TensorView& view) {
    int64_t extent = 0;
    for (int16_t i = 0; i < view.ndim; ++i) extent += (view.sizes[i] - 1) * view.strides[i];
    return extent;
}

}  // namespace

Range range_of(const Health& health, DType dtype) {
    if (health.kinds() != 0) return {1, 1, true};
    const uint64_t smallest = health.absmin > 0 ? encode_magnitude(health.absmin, info(dtype)) : ~uint64_t(0);
    return {health.absmax > 0 ? encode_magnitude(health.absmax, info(dtype)) : 0, smallest, false};
}

void DeviceReadings::begin() noexcept { judging = this; }

void DeviceReadings::end() noexcept {
    judging = nullptr;
    event_.clear();
    by_data_.clear();
}

/// Of finite values the quick pass knows magnitudes only.
DeviceReadings::Reading DeviceReadings::reading_of(const TensorView& view, const Range& range, const Health* health) {
    Reading reading{&view, view.data,         view.impl, view.sizes, extent_of(view), view.numel, view.dtype,
                    false, health != nullptr, range,     {}};
    if (health != nullptr) {
        reading.health = *health;
        return reading;
    }
    Health& known = reading.health;
    const int64_t lanes = view.numel * info(view.dtype).lanes;
    known.elements = view.numel;
    known.finite = range.suspicious ? 0 : lanes;
    known.first_bad = -1;
    if (range.suspicious) {  // one element at least; patterns above that of infinity are NaN
        const DTypeInfo& type = info(view.dtype);
        const bool infinite = type.infinity == InfinityKind::IEEE && range.max_magnitude == type.exponent_mask();
        (infinite ? known.pos_inf : known.nan) = 1;
        return reading;
    }
    known.absmax = magnitude_value(range.max_magnitude, view.dtype);
    if (range.min_nonzero_magnitude != ~uint64_t(0))
        known.absmin = magnitude_value(range.min_nonzero_magnitude, view.dtype);
    if (range.max_magnitude == 0) known.zero = lanes;
    known.max = known.absmax;
    known.min = -known.absmax;
    reading.measured = range.max_magnitude == 0;
    return reading;
}

const DeviceReadings::Reading* DeviceReadings::find(const TensorView& view) const noexcept {
    if (judging != this) return nullptr;
    if (const Reading* reading = find_in_event(view)) return reading;
    if (view.device == Device::Cpu) return nullptr;
    const auto it = last_.find(view.storage);
    if (it == last_.end()) return nullptr;
    const Reading& last = it->second;
    const bool same = last.data == view.data && last.numel == view.numel && last.dtype == view.dtype &&
                      last.extent == extent_of(view);
    return same ? &last : nullptr;
}

/// Of the view itself, or of a copy of it.
const DeviceReadings::Reading* DeviceReadings::find_in_event(const TensorView& view) const noexcept {
    const auto is_of = [&](const Reading& r) {
        return r.view == &view ||
               (view.ndim > 0 && r.data == view.data && r.sizes == view.sizes && r.impl == view.impl);
    };
    if (event_.size() <= kShort) {
        const auto it = std::find_if(event_.begin(), event_.end(), is_of);
        return it == event_.end() ? nullptr : &*it;
    }
    const auto [begin, end] = by_data_.equal_range(view.data);
    const Reading* first = nullptr;
    for (auto it = begin; it != end; ++it) {
        const Reading& reading = event_[it->second];
        if (is_of(reading) && (first == nullptr || &reading < first)) first = &reading;
    }
    return first;
}

void DeviceReadings::keep(const Reading& reading) {
    event_.push_back(reading);
    if (event_.size() <= kShort) return;
    for (size_t i = by_data_.size(); i < event_.size(); ++i) by_data_.emplace(event_[i].data, i);
}

Range DeviceReadings::range(const TensorView& tensor) const noexcept {
    if (const Reading* reading = find(tensor)) return reading->range;
    return tensor.device == Device::Cpu ? host_.range(tensor) : Range{0, ~uint64_t(0), false};
}

KindSet DeviceReadings::kinds(const TensorView& tensor) const noexcept {
    const Reading* reading = find(tensor);
    if (reading == nullptr) return tensor.device == Device::Cpu ? host_.kinds(tensor) : KindSet(0);
    return reading->unknown ? kAllKinds : reading->health.kinds();
}

Health DeviceReadings::health(const TensorView& tensor) const noexcept {
    if (const Reading* reading = find(tensor)) return reading->health;
    if (tensor.device == Device::Cpu) return host_.health(tensor);
    Health none{};
    none.first_bad = -1;
    return none;
}

bool DeviceReadings::measures(const TensorView& tensor) const noexcept {
    const Reading* reading = find(tensor);
    return reading == nullptr ? tensor.device == Device::Cpu : reading->measured;
}

void DeviceReadings::add(const TensorView& view, const Range& range, const Health* health) {
    keep(reading_of(view, range, health));
}

void DeviceReadings::add_unknown(const TensorView& view) {
    Reading reading = reading_of(view, Range{0, ~uint64_t(0), true}, nullptr);
    reading.unknown = true;
    keep(reading);
}

void DeviceReadings::wrote(const TensorView& view, const Range& range, const Health* health) {
    if (last_.size() >= kMaxStorages) last_.clear();
    last_.insert_or_assign(view.storage, reading_of(view, range, health));
}

}  // namespace numsan
