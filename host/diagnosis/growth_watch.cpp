#include "host/diagnosis/growth_watch.h"

#include <algorithm>
#include <cmath>

#include "host/ops/op_traits.h"
#include "host/ops/operands.h"
#include "host/ops/summed.h"

namespace numsan {
namespace {

/// What made its operand is told instead, unless it rounds to a type whose numbers end earlier.
bool only_hands_on(const OpEvent& event, const TensorView& output) {
    if (!hands_on(traits_of(event), event.op->op_class) || event.input_count == 0) return false;
    const TensorView& from = event.inputs[event.input_count - 1];  // copy_ reads the second one
    return !scannable(from) || end_of_range(info(from.dtype)) <= end_of_range(info(output.dtype));
}

}  // namespace

bool GrowthWatch::is_product(const OpInfo& op) noexcept { return scales(traits_of(op.name)); }

void GrowthWatch::output(const OpEvent& event, const OpContext& context, const TensorView& output, const Range& range) {
    if (!was_read(range) || range.suspicious || !scannable(output) || output.numel < 1) return;
    if (context.in_backward || event.on_device || event.op->op_class == OpClass::Allocation) return;
    if (output.numel == 1 && is_product(*event.op)) return;
    const uint64_t place = uint64_t(context.stack) << 32 | uint64_t(event.op->id) << 8 | uint64_t(output.dtype);
    Grown grown;
    if (!add(place << 2 | 3, context.step, range.max_magnitude, output.dtype, grown)) return;
    if (only_hands_on(event, output)) return;
    // The sum that is the result, or that it is a mean of, may end earlier.
    grown.forecast.least -= std::log2(static_cast<double>(summed(event, output))) / grown.forecast.rate;
    keep({FoundGrowth::Of::Output, output.dtype, event.op, context.stack, nullptr, grown.step, grown.largest,
          grown.forecast});
}

void GrowthWatch::gradient(const NodeEvent& event, const OpContext& context, const Lineage& lineage) {
    if (context.ignored || event.variable == nullptr) return;
    const auto look = [&](const TensorView& tensor, FoundGrowth::Of of, uint64_t tag) {
        if (lineage.largest(tensor.storage) < lowest_watched(tensor.dtype)) [[likely]]
            return;
        Lineage::Record made;
        if (tensor.device != Device::Cpu || !scannable(tensor) || tensor.numel < 1) return;
        if (!lineage.find(tensor.storage, made) || !made.was_read() || made.is_bad()) return;
        if (made.numel != tensor.numel || made.dtype != tensor.dtype) return;
        const uint64_t key = reinterpret_cast<uintptr_t>(event.variable->impl) << 2 | tag;
        Grown grown;
        if (!add(key, context.step, made.largest, tensor.dtype, grown)) return;
        if (of == FoundGrowth::Of::Gradient && scaled_.load(std::memory_order_relaxed)) return;
        keep({of, tensor.dtype, nullptr, 0, event.variable->impl, grown.step, grown.largest, grown.forecast});
    };
    look(*event.variable, FoundGrowth::Of::Parameter, 1);
    if (event.input_count > 0) look(event.inputs[0], FoundGrowth::Of::Gradient, 2);
}

bool GrowthWatch::add(uint64_t key, int64_t step, uint64_t largest, DType dtype, Grown& grown) noexcept {
    const uint64_t hash = key * 0x9e3779b97f4a7c15ull >> 40;
    for (uint64_t i = 0; i < kProbes; ++i) {
        Entry& entry = entries_[(hash + i) % kEntries];
        if (entry.busy.exchange(true, std::memory_order_acquire)) return false;
        const bool mine = entry.key == key || step - entry.step > kForgotten || entry.key == 0;
        const bool tells = mine && add_to(entry, key, step, largest, dtype, grown);
        entry.busy.store(false, std::memory_order_release);
        if (mine) return tells;
    }
    return false;
}

bool GrowthWatch::add_to(Entry& entry, uint64_t key, int64_t step, uint64_t largest, DType dtype,
                         Grown& grown) noexcept {
    bool tells = false;
    if (entry.key != key) {
        entry.key = key;
        entry.told = false;
        entry.growth = Growth{};
    } else if (entry.step == step) {
        entry.largest = std::max(entry.largest, largest);
        return false;
    } else if (!entry.told) {
        const DTypeInfo& type = info(dtype);
        const bool grows = step > entry.step && entry.growth.add(entry.step, binades(entry.largest, type));
        if (grows && largest > entry.largest && rises_.load(std::memory_order_relaxed)) {
            if (const auto forecast = entry.growth.forecast(end_of_range(type))) {
                grown = {entry.step, entry.largest, *forecast};
                entry.told = tells = true;
            }
        }
    }
    entry.step = step;
    entry.largest = largest;
    return tells;
}

void GrowthWatch::loss(const double* losses, int64_t count, bool alone, bool scaled) noexcept {
    constexpr int64_t kAll = kLosses, kHalf = kAll / 2;
    if (scaled) scaled_.store(true, std::memory_order_relaxed);
    double last = 0, before = 0;
    for (int64_t back = 1; back <= kAll && count >= kAll; ++back)
        (back <= kHalf ? last : before) += std::fabs(losses[(count - back) % kAll]);
    rises_.store(alone && count >= kAll && !(last < kFallingLoss * before), std::memory_order_relaxed);
}

void GrowthWatch::keep(const FoundGrowth& found) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const size_t count = count_.load(std::memory_order_relaxed);
    if (count >= kMost) return;
    found_[count] = found;
    count_.store(count + 1, std::memory_order_release);
}

std::vector<FoundGrowth> GrowthWatch::found() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return {found_.begin(), found_.begin() + static_cast<ptrdiff_t>(count_.load(std::memory_order_relaxed))};
}

/// The child's only thread calls this: whoever was in an entry stayed with the parent.
void GrowthWatch::forget() noexcept {
    for (size_t i = 0; i < kEntries; ++i) {
        entries_[i].key = 0;
        entries_[i].busy.store(false, std::memory_order_relaxed);
    }
    rises_ = scaled_ = false;
    count_ = 0;
}

}  // namespace numsan
