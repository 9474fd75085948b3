#include "host/diagnosis/growth_watch.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "host/base/thresholds.h"

namespace numsan {

bool GrowthWatch::is_product(const char* op) noexcept {
    const std::string_view name(op);
    return name == "aten::mul" || name == "aten::mul_" || name == "aten::div" || name == "aten::div_";
}

namespace {

/// It hands on how large its operand is, as clone() and abs() do: what made that is told instead.
bool hands_on(const OpInfo* op) { return op != nullptr && op->op_class == OpClass::Preserving; }

}  // namespace

void GrowthWatch::begin_step(Entry& entry, uint64_t key, const FoundGrowth& now) {
    if (entry.key != key) {
        entry.key = key;
        entry.told = false;
        entry.growth = Growth{};
    } else if (!entry.told) {
        const DTypeInfo& type = info(now.dtype);
        const bool grows = now.step > entry.step && entry.growth.add(entry.step, binades(entry.largest, type));
        if (grows && now.largest > entry.largest && !hands_on(now.op) && rises_.load(std::memory_order_relaxed)) {
            const bool counts = now.of != FoundGrowth::Of::Gradient || !scaled_.load(std::memory_order_relaxed);
            const auto forecast = counts ? entry.growth.forecast(end_of_range(type)) : std::nullopt;
            if (forecast) {
                FoundGrowth found = now;
                found.step = entry.step;
                found.largest = entry.largest;
                found.forecast = *forecast;
                found.forecast.least -= std::log2(static_cast<double>(now.summed)) / forecast->rate;
                keep(found);
                entry.told = true;
            }
        }
    }
    entry.step = now.step;
    entry.largest = now.largest;
}

void GrowthWatch::gradient(const NodeEvent& event, const OpContext& context, const Lineage& lineage) {
    if (context.ignored || event.variable == nullptr) return;
    const auto look = [&](const TensorView& tensor, FoundGrowth::Of of, uint64_t tag) {
        Lineage::Record made;
        if (tensor.device != Device::Cpu || !is_watched(tensor) || !lineage.find(tensor.storage, made)) return;
        if (!made.was_read() || made.is_bad() || made.numel != tensor.numel || made.dtype != tensor.dtype) return;
        const uint64_t key = reinterpret_cast<uintptr_t>(event.variable->impl) << 2 | tag;
        add(key, {of, tensor.dtype, nullptr, 0, event.variable->impl, context.step, made.largest, 1, {}});
    };
    look(*event.variable, FoundGrowth::Of::Parameter, 1);
    if (event.input_count > 0) look(event.inputs[0], FoundGrowth::Of::Gradient, 2);
}

void GrowthWatch::loss(double value, bool alone, bool scaled) noexcept {
    if (scaled) scaled_.store(true, std::memory_order_relaxed);
    losses_[loss_count_++ % kLosses] = std::fabs(value);
    double last = 0, before = 0;
    constexpr size_t kHalf = kLosses / 2;
    for (size_t back = 0; back < kLosses && loss_count_ >= kLosses; ++back)
        (back < kHalf ? last : before) += losses_[(loss_count_ - 1 - back) % kLosses];
    rises_.store(alone && loss_count_ >= kLosses && !(last < kFallingLoss * before), std::memory_order_relaxed);
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
    loss_count_ = 0;
}

}  // namespace numsan
