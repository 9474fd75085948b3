// How storages came to hold what they hold: for each, the op that wrote it last, what that op read, and how large the
// values were.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "host/core/adapter_abi.h"
#include "host/core/atomic_record.h"
#include "host/core/health.h"
#include "host/core/huge_array.h"
#include "host/stacks/stack_source.h"

namespace numsan {

/// [MT] A memory of recent storages, with two places for each: it may forget, it never invents. No lock, no allocation
/// after construction.
class Lineage {
  public:
    enum Flag : uint16_t {
        kTouched = 1,         ///< computed from parameters
        kInModule = 2,        ///< by an op inside a module call
        kBackward = 4,        ///< inside an autograd node
        kReadsParameter = 8,  ///< an operand was a parameter
        /// a parameter, a gradient or an average of them, made outside modules with gradients off
        kState = 16,
        kGradient = 32,       ///< an autograd node handed it to a leaf: what the optimizer will read
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

    /// What is remembered of the storage's last write; 0 when nothing is. One load: it is asked for every operand of
    /// every op.
    uint16_t flags(const void* storage) const noexcept {
        for (const size_t place : {slot(storage), slot(storage) ^ 1}) {
            const uint64_t word = slots_[place].flags.load(std::memory_order_relaxed);
            if (word >> 16 == address(storage)) return static_cast<uint16_t>(word);
        }
        return 0;
    }
    /// Asks for what add() and flags() of the storage are about to touch: the table is larger than a core's cache.
    void prefetch(const void* storage) const noexcept {
        const char* slot_begin = reinterpret_cast<const char*>(&slots_[slot(storage)]);
        __builtin_prefetch(slot_begin, 1);
        __builtin_prefetch(slot_begin + 64, 1);
    }
    bool touched(const void* storage) const noexcept { return (flags(storage) & kTouched) != 0; }

    bool find(const void* storage, Record& record) const noexcept {
        for (const size_t place : {slot(storage), slot(storage) ^ 1}) {
            const Slot& kept = slots_[place];
            if (!kept.holds(storage) || !kept.record.load(record) || record.storage != storage) continue;
            record.flags |= flags(storage);
            return true;
        }
        return false;
    }

    /// The storage is new memory, whatever was remembered of its address.
    void forget(const void* storage) noexcept {
        for (const size_t place : {slot(storage), slot(storage) ^ 1}) {
            Slot& kept = slots_[place];
            if (!kept.holds(storage)) continue;
            kept.record.store({});
            kept.flags.store(0, std::memory_order_relaxed);
        }
    }

    /// The storage holds a leaf's gradient.
    void mark_gradient(const void* storage) noexcept {
        home(storage).hold(storage, flags(storage) | kState | kTouched | kGradient);
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
        const bool in_place = (output.flags & kWritten) != 0;
        const Operands operands = operands_of(event, output);
        for (int32_t i = operands.first; i < event.input_count && record.input_count < kMaxInputs;
             i += operands.stride) {
            if (event.inputs[i].storage != output.storage)
                record.inputs[record.input_count++] = event.inputs[i].storage;
        }
        Slot& kept = home(output.storage);
        if (in_place) record.flags |= this->flags(output.storage) & (kTouched | kState | kGradient);
        Record old;
        if (in_place && kept.record.load(old) && old.storage == output.storage) {
            for (uint8_t i = 0; i < old.input_count && record.input_count < kMaxInputs; ++i) {
                record.inputs[record.input_count++] = old.inputs[i];
            }
        }
        if (kept.record.store(record)) kept.hold(output.storage, record.flags);
    }

    /// Calls visit(record, distance) for what `storage` was computed from, nearest first, itself included, while visit
    /// returns true (false: do not look behind this one). Only records older than `before` count: a younger one is of
    /// memory used again.
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
    /// Which inputs an output was computed from: all, but in an op over lists only those at its place in them. How long
    /// the lists of a fused optimizer are is not known.
    struct Operands {
        int32_t first;
        int32_t stride;
    };
    static Operands operands_of(const OpEvent& event, const TensorView& output) noexcept {
        constexpr char kForeach[] = "aten::_foreach_", kFused[] = "aten::_fused_";
        if (event.output_count < 2 || std::strncmp(event.op->name, "aten::_f", sizeof "aten::_f" - 1) != 0)
            return {0, 1};
        if (std::strncmp(event.op->name, kFused, sizeof kFused - 1) == 0) return {event.input_count, 1};
        if (std::strncmp(event.op->name, kForeach, sizeof kForeach - 1) != 0) return {0, 1};
        return {static_cast<int32_t>(&output - event.outputs), event.output_count};
    }

    static constexpr size_t kSlots = 1 << 14;
    static constexpr size_t kMaxSteps = 128;
    static size_t slot(const void* storage) noexcept {
        const auto bits = reinterpret_cast<uintptr_t>(storage);
        return ((bits >> 4) ^ (bits >> 18)) % kSlots;
    }
    static uint64_t address(const void* storage) noexcept {
        return reinterpret_cast<uintptr_t>(storage) & 0xffffffffffff;
    }

    struct alignas(128) Slot {
        std::atomic<uint64_t> flags{0};  ///< address in the upper 48 bits, Record::flags in the lower 16; 0: free
        AtomicRecord<Record> record;

        bool holds(const void* storage) const noexcept {
            return flags.load(std::memory_order_relaxed) >> 16 == address(storage);
        }
        bool free() const noexcept { return flags.load(std::memory_order_relaxed) == 0; }
        void hold(const void* storage, unsigned value) noexcept {
            flags.store(address(storage) << 16 | value, std::memory_order_relaxed);
        }
    };

    /// Where the storage is remembered, or will be: of its two places the one that was written longer ago makes room.
    Slot& home(const void* storage) noexcept {
        Slot& first = slots_[slot(storage)];
        Slot& second = slots_[slot(storage) ^ 1];
        if (first.holds(storage)) return first;
        if (second.holds(storage)) return second;
        if (first.free()) return first;
        if (second.free()) return second;
        Record one, other;
        return first.record.load(one) && second.record.load(other) && one.seq > other.seq ? second : first;
    }

    HugeArray<Slot> slots_{kSlots};
};

}  // namespace numsan
