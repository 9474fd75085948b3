// Watches the largest magnitudes of each step, for the option `diagnose`: of what ops of the forward pass write, place
// by place, and of parameters and their gradients. What it is told was read by the scan of outputs already. Values that
// are below kWatchedRange of their type's range, as nearly all are, cost a comparison.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "host/base/adapter_abi.h"
#include "host/base/health.h"
#include "host/base/thresholds.h"
#include "host/diagnosis/growth.h"
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
    Forecast forecast;
};

/// [MT] Each place and parameter has an entry of a table of fixed size: it may forget, it never invents. No lock, no
/// allocation and no system call but where a warning is found, which is kMost times at most.
class GrowthWatch {
  public:
    static constexpr size_t kMost = 8;     ///< warnings that are kept
    static constexpr size_t kLosses = 16;  ///< that say whether the loss falls

    GrowthWatch() : entries_(std::make_unique<Entry[]>(kEntries)) {}

    /// A finished op on the host. `ranges`: of its first outputs, as they were read.
    void op(const OpEvent& event, const OpContext& context, const Range* ranges, int32_t range_count) {
        if (context.node != nullptr || !context.touched || !event.grad_enabled) return;
        for (int32_t i = 0; i < event.output_count && i < range_count; ++i) {
            if (ranges[i].max_magnitude >= lowest_watched(event.outputs[i].dtype)) [[unlikely]]
                output(event, context, event.outputs[i], ranges[i]);
        }
    }

    /// An AccumulateGrad node begins: what is remembered of its parameter and of the gradient.
    void gradient(const NodeEvent& event, const OpContext& context, const Lineage& lineage);

    /// A backward pass begins. `losses`: the last kLosses, number n at n % kLosses; `count`: of all there were.
    /// `alone`: all that were seen began at the same place; `scaled`: a factor of the program's own may be in it.
    void loss(const double* losses, int64_t count, bool alone, bool scaled) noexcept;

    /// A number that is a product may be a loss times a scale that doubles by design.
    static bool is_product(const OpInfo& op) noexcept;

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
    /// Growth that is to be told, up to a step that is over.
    struct Grown {
        int64_t step;
        uint64_t largest;
        Forecast forecast;
    };

    static constexpr size_t kTypes = std::size(kDTypes);
    /// Magnitude patterns from which on values of a type are followed; beyond all of types that are not watched: those
    /// of 8 bits have scales beside them that follow the values.
    static constexpr std::array<uint64_t, kTypes> lowest_watched() {
        std::array<uint64_t, kTypes> patterns{};
        for (size_t i = 0; i < kTypes; ++i) {
            const DTypeInfo& type = kDTypes[i];
            const bool watched = type.lanes == 1 && type.lane_bytes >= 2;
            patterns[i] = watched ? magnitude_at(kWatchedRange * end_of_range(type), type) : ~uint64_t(0);
        }
        return patterns;
    }
    static uint64_t lowest_watched(DType dtype) noexcept {
        static constexpr std::array<uint64_t, kTypes> kPatterns = lowest_watched();
        return kPatterns[static_cast<size_t>(dtype)];
    }

    void output(const OpEvent& event, const OpContext& context, const TensorView& output, const Range& range);
    /// The largest magnitude of a step so far, of `key`. True: it has grown, and that was not told yet.
    bool add(uint64_t key, int64_t step, uint64_t largest, DType dtype, Grown& grown) noexcept;
    bool add_to(Entry& entry, uint64_t key, int64_t step, uint64_t largest, DType dtype, Grown& grown) noexcept;
    void keep(const FoundGrowth& found);

    static constexpr size_t kEntries = 4096;
    static constexpr uint64_t kProbes = 4;
    static constexpr int64_t kForgotten = 64;  ///< steps without it after which a place gives way

    std::unique_ptr<Entry[]> entries_;
    std::atomic<bool> rises_{false};   ///< the last kLosses losses are known, are of one place and do not fall
    std::atomic<bool> scaled_{false};  ///< and so are the gradients
    std::atomic<size_t> count_{0};
    mutable std::mutex mutex_;
    std::array<FoundGrowth, kMost> found_{};
};

}  // namespace numsan
