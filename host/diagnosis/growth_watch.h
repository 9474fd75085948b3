// Watches the largest magnitudes of each step, for the option `diagnose`: of what ops of the forward pass write, place
// by place, and of parameters and their gradients. What it is told was read by the scan of outputs already.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "host/base/adapter_abi.h"
#include "host/base/health.h"
#include "host/diagnosis/growth.h"
#include "host/ops/operands.h"
#include "host/stacks/stack_source.h"
#include "host/track/lineage.h"
#include "host/track/op_context.h"

namespace numsan {

/// Growth that will leave its type's range.
struct FoundGrowth {
    enum class Of : uint8_t { Output, Parameter, Gradient };
    Of of = Of::Output;
    DType dtype = DType::Float32;
    const OpInfo* op = nullptr;  ///< of an output
    StackId stack = 0;           ///< of an output
    const void* impl = nullptr;  ///< of a parameter
    int64_t step = 0;            ///< the last that was looked at
    uint64_t largest = 0;        ///< magnitude pattern in that step
    int64_t summed = 1;          ///< elements that the op may sum up for one of its results: their sum ends earlier
    Forecast forecast;
};

/// [MT] Each place and parameter has an entry of a table of fixed size: it may forget, it never invents. No lock, no
/// allocation and no system call but where a warning is found, which is kMost times at most.
class GrowthWatch {
  public:
    static constexpr size_t kMost = 8;  ///< warnings that are kept

    GrowthWatch() : entries_(std::make_unique<Entry[]>(kEntries)) {}

    /// A finished op on the host. `ranges`: of its first outputs, as they were read.
    void op(const OpEvent& event, const OpContext& context, const Range* ranges, int32_t range_count) {
        if (context.node != nullptr || context.in_backward || !context.touched || !event.grad_enabled) return;
        if (event.on_device || event.op->op_class == OpClass::Allocation) return;
        for (int32_t i = 0; i < event.output_count && i < range_count; ++i) {
            const TensorView& output = event.outputs[i];
            if (!was_read(ranges[i]) || ranges[i].suspicious || !is_watched(output)) continue;
            if (output.numel == 1 && is_product(event.op->name)) continue;
            const uint64_t key = uint64_t(context.stack) << 32 | uint64_t(event.op->id) << 8 | uint64_t(output.dtype);
            add(key << 2 | 3, {FoundGrowth::Of::Output,
                               output.dtype,
                               event.op,
                               context.stack,
                               nullptr,
                               context.step,
                               ranges[i].max_magnitude,
                               summed(event, output),
                               {}});
        }
    }

    /// An AccumulateGrad node begins: what is remembered of its parameter and of the gradient.
    void gradient(const NodeEvent& event, const OpContext& context, const Lineage& lineage);

    /// A backward pass begins from `value`. `alone`: all that were seen began at the same place; `scaled`: a factor of
    /// the program's own may be in it.
    void loss(double value, bool alone, bool scaled) noexcept;

    /// A number that is a product may be a loss times a scale that doubles by design.
    static bool is_product(const char* op) noexcept;

    size_t count() const noexcept { return count_.load(std::memory_order_acquire); }
    std::vector<FoundGrowth> found() const;

    // Around a fork: a child begins anew, and alone.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }
    void forget() noexcept;

  private:
    struct alignas(64) Entry {
        std::atomic<bool> busy{false};  ///< a thread is in it; another one leaves its value out
        bool told = false;
        uint64_t key = 0;
        int64_t step = 0;
        uint64_t largest = 0;
        Growth growth;
    };

    /// Real numbers of 16 bits or more: those of 8 bits have scales beside them that follow the values.
    static bool is_watched(const TensorView& tensor) noexcept {
        const DTypeInfo& type = info(tensor.dtype);
        return (tensor.flags & kScannable) != 0 && type.lanes == 1 && type.lane_bytes >= 2 && tensor.numel > 0;
    }

    /// Of a reduction: elements of its operand for each of the result. It means nothing of other ops, and widens their
    /// interval downwards.
    static int64_t summed(const OpEvent& event, const TensorView& output) noexcept {
        return event.input_count > 0 ? std::max<int64_t>(event.inputs[0].numel / output.numel, 1) : 1;
    }

    void add(uint64_t key, const FoundGrowth& now) {
        const uint64_t hash = key * 0x9e3779b97f4a7c15ull >> 40;
        for (uint64_t i = 0; i < kProbes; ++i) {
            Entry& entry = entries_[(hash + i) % kEntries];
            if (entry.busy.exchange(true, std::memory_order_acquire)) return;
            const bool mine = entry.key == key || now.step - entry.step > kForgotten || entry.key == 0;
            if (mine) see(entry, key, now);
            entry.busy.store(false, std::memory_order_release);
            if (mine) return;
        }
    }
    void see(Entry& entry, uint64_t key, const FoundGrowth& now) {
        if (entry.key == key && entry.step == now.step) {
            if (now.largest > entry.largest) entry.largest = now.largest;
        } else {
            begin_step(entry, key, now);
        }
    }
    void begin_step(Entry& entry, uint64_t key, const FoundGrowth& now);
    void keep(const FoundGrowth& found);

    static constexpr size_t kEntries = 4096;
    static constexpr uint64_t kProbes = 4;
    static constexpr int64_t kForgotten = 64;  ///< steps without it after which a place gives way
    static constexpr size_t kLosses = 16;

    std::unique_ptr<Entry[]> entries_;
    std::atomic<bool> rises_{false};   ///< the last kLosses losses are known, are of one place and do not fall
    std::atomic<bool> scaled_{false};  ///< and so are the gradients
    std::atomic<size_t> count_{0};
    mutable std::mutex mutex_;
    std::array<FoundGrowth, kMost> found_{};
    std::array<double, kLosses> losses_{};  ///< magnitudes; under the caller's lock
    size_t loss_count_ = 0;
};

}  // namespace numsan
