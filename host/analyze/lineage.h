// How storages came to hold what they hold: for each, the op that wrote it last, what that op read, and how large the values were.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "host/core/adapter_abi.h"
#include "host/core/atomic_record.h"
#include "host/core/health.h"
#include "host/stacks/stack_source.h"

namespace numsan {

/// [MT] A direct-mapped memory of recent storages: it may forget, it never invents. No lock, no allocation after construction.
class Lineage {
  public:
    enum Flag : uint16_t {
        kTouched = 1,         ///< computed from parameters
        kInModule = 2,        ///< by an op inside a module call
        kBackward = 4,        ///< inside an autograd node
        kReadsParameter = 8,  ///< an operand was a parameter
        kState = 16,          ///< a parameter, a gradient or an average of them, made outside modules with gradients off
    };
    static constexpr size_t kMaxInputs = 4;

    struct Record {
        const void* storage = nullptr;
        const OpInfo* op = nullptr;
        int64_t seq = -1;
        uint64_t largest = 0;   ///< magnitude pattern, see Range
        uint64_t smallest = 0;  ///< smallest non-zero magnitude pattern, ~0 when there is none
        int64_t numel = 0;
        std::array<const void*, kMaxInputs> inputs{};
        StackId stack = 0;
        uint16_t flags = 0;
        uint8_t input_count = 0;
        DType dtype = DType::Float32;
    };

    Lineage()
        : records_(std::make_unique<AtomicRecord<Record>[]>(kSlots)), flags_(std::make_unique<std::atomic<uint64_t>[]>(kSlots)) {}

    /// What is remembered of the storage's last write; 0 when nothing is. One load: it is asked for every operand of every op.
    uint16_t flags(const void* storage) const noexcept {
        const uint64_t word = flags_[slot(storage)].load(std::memory_order_relaxed);
        return word >> 16 == address(storage) ? static_cast<uint16_t>(word) : 0;
    }
    bool touched(const void* storage) const noexcept { return (flags(storage) & kTouched) != 0; }

    bool find(const void* storage, Record& record) const noexcept {
        return records_[slot(storage)].load(record) && record.storage == storage;
    }

    /// The storage is new memory, whatever was remembered of its address.
    void forget(const void* storage) noexcept {
        AtomicRecord<Record>& kept = records_[slot(storage)];
        Record record;
        if (kept.load(record) && record.storage == storage) kept.store({});
        if (flags(storage) != 0) flags_[slot(storage)].store(0, std::memory_order_relaxed);
    }

    /// The storage holds a gradient.
    void mark_state(const void* storage) noexcept {
        AtomicRecord<Record>& kept = records_[slot(storage)];
        Record record;
        if (!kept.load(record) || record.storage != storage) return;
        record.flags |= kState | kTouched;
        keep(kept, record);
    }

    /// `output` was written by `event`. An op that writes in place keeps what its operand came from.
    void add(const OpEvent& event, const TensorView& output, const Range& range, int64_t seq, StackId stack,
             uint16_t flags) noexcept {
        Record record;
        record.storage = output.storage;
        record.op = event.op;
        record.seq = seq;
        record.largest = range.max_magnitude;
        record.smallest = range.min_nonzero_magnitude;
        record.numel = output.numel;
        record.stack = stack;
        record.flags = flags;
        record.dtype = output.dtype;
        bool in_place = false;
        for (int32_t i = 0; i < event.input_count && record.input_count < kMaxInputs; ++i) {
            if (event.inputs[i].storage == output.storage) {
                in_place = true;
            } else {
                record.inputs[record.input_count++] = event.inputs[i].storage;
            }
        }
        AtomicRecord<Record>& kept = records_[slot(output.storage)];
        Record old;
        if (in_place && kept.load(old) && old.storage == output.storage) {
            record.flags |= old.flags & (kTouched | kState);
            for (uint8_t i = 0; i < old.input_count && record.input_count < kMaxInputs; ++i) {
                record.inputs[record.input_count++] = old.inputs[i];
            }
        }
        keep(kept, record);
    }

    /// Calls visit(record, distance) for what `storage` was computed from, nearest first, itself included, while visit returns
    /// true (false: do not look behind this one). Only records older than `before` count: a younger one is of memory used again.
    template <class Visit>
    void ancestors(const void* storage, int64_t before, Visit&& visit) const {
        struct Step {
            const void* storage;
            int64_t before;
            int distance;
        };
        std::vector<Step> steps{{storage, before, 0}};
        std::vector<const void*> seen;
        for (size_t next = 0; next < steps.size() && next < kMaxSteps; ++next) {
            const Step step = steps[next];
            if (std::find(seen.begin(), seen.end(), step.storage) != seen.end()) continue;
            seen.push_back(step.storage);
            Record record;
            if (!find(step.storage, record) || record.seq >= step.before) continue;
            if (!visit(record, step.distance)) continue;
            for (uint8_t i = 0; i < record.input_count; ++i) {
                steps.push_back({record.inputs[i], record.seq, step.distance + 1});
            }
        }
    }

  private:
    static constexpr size_t kSlots = 1 << 14;
    static constexpr size_t kMaxSteps = 128;
    static size_t slot(const void* storage) noexcept {
        const auto bits = reinterpret_cast<uintptr_t>(storage);
        return ((bits >> 4) ^ (bits >> 18)) % kSlots;
    }
    static uint64_t address(const void* storage) noexcept { return reinterpret_cast<uintptr_t>(storage) & 0xffffffffffff; }

    void keep(AtomicRecord<Record>& kept, const Record& record) noexcept {
        kept.store(record);
        flags_[slot(record.storage)].store(address(record.storage) << 16 | record.flags, std::memory_order_relaxed);
    }

    std::unique_ptr<AtomicRecord<Record>[]> records_;
    std::unique_ptr<std::atomic<uint64_t>[]> flags_;  ///< address in the upper 48 bits, Record::flags in the lower 16
};

}  // namespace numsan
