// How storages came to hold what they hold: for each, the op that wrote it last, what that op read, and how large the
// values were.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "host/base/adapter_abi.h"
#include "host/base/atomic_record.h"
#include "host/base/health.h"
#include "host/base/huge_array.h"
#include "host/base/ids.h"
#include "host/base/value_classes.h"
#include "host/stacks/stack_source.h"
#include "host/track/integer_wraps.h"
#include "host/track/step_starts.h"

namespace numsan {

/// [MT] A memory of recent writes: the last one of each recent storage, two places for each, and a ring of all of them,
/// through which a value is followed to what it was computed from even when the memory between is used again. It may
/// forget, it never invents. No lock, no allocation after construction.
class Lineage {
  public:
    enum Flag : uint16_t {
        kTouched = 1,         ///< computed from parameters
        kInModule = 2,        ///< by an op inside a module call
        kBackward = 4,        ///< inside an autograd node
        kReadsParameter = 8,  ///< an operand was a parameter
        /// a parameter, a gradient or an average of them, made outside modules with gradients off
        kState = 16,
        kGradient = 32,  ///< an autograd node handed it to a leaf: what the optimizer will read
        /// of a record alone: a number among the op's arguments is not zero, but is in the result's 16- or 8-bit type
        kLostNumber = 64,
        /// of a record alone: an operand was a tensor of which nothing is remembered
        kUnknownOperand = 128,
    };
    static constexpr size_t kMaxInputs = 4;

    /// Names one write; 0: none.
    using WriteId = uint64_t;

    struct Record {
        WriteId id = 0;
        const void* storage = nullptr;
        const OpInfo* op = nullptr;
        OpSeq seq = OpSeq::None;
        uint64_t largest = 0;   ///< magnitude pattern, see Range
        uint64_t smallest = 0;  ///< smallest non-zero magnitude pattern, ~0 when there is none
        int64_t numel = 0;
        std::array<WriteId, kMaxInputs> inputs{};  ///< the writes of what the op read, its own operand's included
        StackId stack = 0;
        uint16_t flags = 0;
        uint8_t input_count = 0;
        DType dtype = DType::Float32;

        /// False where the tier chose not to read what was written.
        bool was_read() const { return smallest != 0; }
        /// Something in it was not finite.
        bool is_bad() const { return was_read() && largest >= value_classes(info(dtype)).smallest_nonfinite(); }

        /// Word by word, as it lies in memory: what is stored as small members and read as a word at once waits.
        static constexpr size_t kWords = 12;
        static uint64_t last_word(StackId stack, uint16_t flags, uint32_t input_count, DType dtype) noexcept {
            return uint64_t(stack) | uint64_t(flags) << 32 | uint64_t(input_count) << 48 | uint64_t(dtype) << 56;
        }
    };
    static_assert(sizeof(Record) == Record::kWords * sizeof(uint64_t) && offsetof(Record, inputs) == 56 &&
                  offsetof(Record, stack) == 88 && offsetof(Record, flags) == 92 &&
                  offsetof(Record, input_count) == 94 && offsetof(Record, dtype) == 95 &&
                  std::endian::native == std::endian::little);

    /// What is remembered of a storage's last write, of an operand as an op read it; zeros when nothing is. Without
    /// initial values: there are some for each op.
    struct Known {
        WriteId last;
        uint16_t flags;
    };
    /// Both in one look: they are asked for every operand of every op.
    Known known(const void* storage) const noexcept {
        const size_t at = slot(storage);
        const Place& first = places_[at];
        if (first.holds(storage)) return first.known();
        const Place& second = places_[at ^ 1];
        return second.holds(storage) ? second.known() : Known{};
    }
    static constexpr int32_t kMaxKnown = 8;

    /// What is remembered of the storage's last write; 0 when nothing is.
    uint16_t flags(const void* storage) const noexcept {
        const Place* place = place_of(storage);
        return place == nullptr ? uint16_t(0) : static_cast<uint16_t>(place->flags.load(std::memory_order_relaxed));
    }
    /// Asks for what add() and flags() of the storage are about to touch: the table is larger than a core's cache.
    void prefetch(const void* storage) const noexcept { __builtin_prefetch(&places_[slot(storage)], 1); }
    bool touched(const void* storage) const noexcept { return (flags(storage) & kTouched) != 0; }

    /// The number of the op that wrote the storage last, None where that is not remembered.
    OpSeq written_at(const void* storage) const noexcept {
        const Place* place = place_of(storage);
        return place == nullptr ? OpSeq::None : place->seq.load(std::memory_order_relaxed);
    }

    bool find(const void* storage, Record& record) const noexcept {
        const Place* place = place_of(storage);
        if (place == nullptr || !find(place->last.load(std::memory_order_relaxed), record) ||
            !are_of_one(record.storage, storage)) {
            return false;
        }
        record.flags |= flags(storage);
        return true;
    }

    /// Record::largest of what find() would find, perhaps of a write of another storage: a look that costs less.
    uint64_t largest(const void* storage) const noexcept {
        const Place* place = place_of(storage);
        const WriteId last = place == nullptr ? 0 : place->last.load(std::memory_order_relaxed);
        return last == 0 ? 0 : ring_[last % kRing].word(offsetof(Record, largest) / sizeof(uint64_t));
    }

    /// The storage is new memory, whatever was remembered of its address.
    void forget(const void* storage) noexcept {
        const size_t at = slot(storage);
        if (places_[at].holds(storage)) places_[at].hold(nullptr, 0, 0, OpSeq::None);
        if (places_[at ^ 1].holds(storage)) places_[at ^ 1].hold(nullptr, 0, 0, OpSeq::None);
    }

    /// What is remembered of a storage now.
    struct Memory {
        Known known{};
        OpSeq seq = OpSeq::None;
    };
    Memory memory_of(const void* storage) const noexcept { return {known(storage), written_at(storage)}; }
    /// The same is remembered of `storage` from now on: another name of that one, its address with the lowest bit set.
    void adopt(const void* storage, const Memory& memory) noexcept {
        if (memory.known.last == 0 && memory.known.flags == 0) return forget(storage);
        home(storage).hold(storage, memory.known.flags, memory.known.last, memory.seq);
    }

    /// The storage holds a leaf's gradient.
    void mark_gradient(const void* storage) noexcept {
        Place& place = home(storage);
        const bool known = place.holds(storage);
        place.hold(storage, (known ? flags(storage) : 0u) | kState | kTouched | kGradient,
                   known ? place.last.load(std::memory_order_relaxed) : 0,
                   known ? place.seq.load(std::memory_order_relaxed) : OpSeq::None);
    }

    /// `output` was written by `event`. An op that writes in place keeps what its operand came from. `known`: of the
    /// first kMaxKnown inputs, as known() answered since anything of ours wrote their storages; null: not asked yet.
    void add(const OpEvent& event, const TensorView& output, const Range& range, OpSeq seq, StackId stack,
             uint16_t flags, const Known* known = nullptr) noexcept {
        WriteId inputs[kMaxInputs] = {};
        uint32_t count = 0;
        uint16_t unknown = 0;
        const Operands operands = operands_of(event, output);
        const Known* own = nullptr;
        Known asked{};
        for (int32_t i = operands.first; i < event.input_count && count < kMaxInputs; i += operands.stride) {
            const TensorView& input = event.inputs[i];
            if (is_parameter(input)) flags |= kReadsParameter;
            const bool looked_up = known != nullptr && i < kMaxKnown;
            if (input.storage == output.storage) {
                if (looked_up) own = &known[i];
                continue;
            }
            const WriteId last = looked_up ? known[i].last : this->known(input.storage).last;
            if (last != 0)
                inputs[count++] = last;
            else if ((input.flags & kNumber) == 0)
                unknown = kUnknownOperand;
        }
        if ((output.flags & kWritten) != 0) {
            if (own == nullptr) {
                asked = this->known(output.storage);
                own = &asked;
            }
            flags |= own->flags & (kTouched | kState | kGradient);
            if (own->last == 0)
                unknown = kUnknownOperand;
            else if (count < kMaxInputs)
                inputs[count++] = own->last;
        }
        const WriteId id = next_.fetch_add(1, std::memory_order_relaxed) + 1;
        // Of the type of others than these nothing is said.
        const DType dtype = (output.flags & kScannable) != 0 ? output.dtype : DType::Float32;
        const uint16_t lost = loses_number(event, dtype) ? kLostNumber : 0;
        const uint64_t words[Record::kWords] = {
            id,
            reinterpret_cast<uintptr_t>(output.storage),
            reinterpret_cast<uintptr_t>(event.op),
            static_cast<uint64_t>(seq),
            range.max_magnitude,
            range.min_nonzero_magnitude,
            static_cast<uint64_t>(output.numel),
            inputs[0],
            inputs[1],
            inputs[2],
            inputs[3],
            Record::last_word(stack, static_cast<uint16_t>(flags | lost | unknown), count, dtype)};
        if (ring_[id % kRing].store_words(words)) {
            home(output.storage).hold(output.storage, flags, id, seq);
        }
    }

    /// Calls visit(record, distance) for what `storage` was computed from, nearest first, itself included, while visit
    /// returns true (false: do not look behind this one). Nothing is visited where the storage was written at or after
    /// op `before`.
    template <class Visit>
    void ancestors(const void* storage, OpSeq before, Visit&& visit) const {
        struct Step {
            WriteId id;
            int distance;
        };
        Record record;
        if (!find(storage, record) || record.seq >= before) return;
        std::vector<Step> steps{{record.id, 0}};
        for (size_t next = 0; next < steps.size() && next < kMaxSteps; ++next) {
            const Step step = steps[next];
            if (!find(step.id, record) || !visit(record, step.distance)) continue;
            for (uint8_t i = 0; i < record.input_count; ++i) {
                const auto same = [&](const Step& other) { return other.id == record.inputs[i]; };
                if (std::none_of(steps.begin(), steps.end(), same))
                    steps.push_back({record.inputs[i], step.distance + 1});
            }
        }
    }

    bool find(WriteId id, Record& record) const noexcept {
        return id != 0 && ring_[id % kRing].load(record) && record.id == id;
    }

    /// Calls visit(record) for every write that is remembered, in no order.
    template <class Visit>
    void recent(Visit&& visit) const {
        Record record;
        for (size_t i = 0; i < kRing; ++i) {
            if (ring_[i].load(record) && record.id != 0) visit(record);
        }
    }

    /// Op `seq` belongs to `step`; the step that it belonged to, -1 when that is forgotten.
    void at_step(int64_t step, OpSeq seq) noexcept { steps_.op(step, seq); }
    int64_t step_of(OpSeq seq) const noexcept { return steps_.step_of(seq); }

    /// What integer ops among them stored in place of results that did not fit.
    IntegerWraps& wraps() noexcept { return wraps_; }
    const IntegerWraps& wraps() const noexcept { return wraps_; }

    /// An operand was a parameter, a gradient, or an average of them.
    bool reads_state(const Record& record) const {
        if ((record.flags & kReadsParameter) != 0) return true;
        Record operand;
        const auto state = [&](WriteId id) { return find(id, operand) && (operand.flags & kState) != 0; };
        return std::any_of(record.inputs.begin(), record.inputs.begin() + record.input_count, state);
    }

  private:
    /// Which inputs an output was computed from: all, but in an op over lists only those at its place in them. How long
    /// the lists of a fused optimizer are is not known.
    struct Operands {
        int32_t first;
        int32_t stride;
    };
    static Operands operands_of(const OpEvent& event, const TensorView& output) noexcept {
        return event.output_count < 2 ? Operands{0, 1} : operands_in_lists(event, output);
    }
    [[gnu::noinline]] static Operands operands_in_lists(const OpEvent& event, const TensorView& output) noexcept {
        static constexpr char kForeach[] = "aten::_foreach_", kFused[] = "aten::_fused_";
        if (std::strncmp(event.op->name, "aten::_f", sizeof "aten::_f" - 1) != 0) return {0, 1};
        if (std::strncmp(event.op->name, kFused, sizeof kFused - 1) == 0) return {event.input_count, 1};
        if (std::strncmp(event.op->name, kForeach, sizeof kForeach - 1) != 0) return {0, 1};
        return {static_cast<int32_t>(&output - event.outputs), event.output_count};
    }

    /// Half of the smallest number and less is rounded to zero.
    static bool loses_number(const OpEvent& event, DType dtype) noexcept {
        const DTypeInfo& type = info(dtype);
        return event.scalar_count != 0 && type.is_narrow() && loses_number(event, type);
    }
    [[gnu::noinline]] static bool loses_number(const OpEvent& event, const DTypeInfo& type) noexcept {
        const double half = std::ldexp(0.5, 1 - static_cast<int>(type.bias) - static_cast<int>(type.mantissa_bits));
        return std::any_of(event.scalars, event.scalars + event.scalar_count,
                           [&](double number) { return number != 0 && std::fabs(number) <= half; });
    }

    static constexpr size_t kPlaces = 1 << 14;
    static constexpr size_t kRing = 1 << 14;
    static constexpr size_t kMaxSteps = 128;
    static size_t slot(const void* storage) noexcept {
        const auto bits = reinterpret_cast<uintptr_t>(storage);
        return ((bits >> 4) ^ (bits >> 18)) % kPlaces;
    }
    /// Two names of one storage, see adopt(). Storages lie at multiples of 16.
    static bool are_of_one(const void* a, const void* b) noexcept {
        return (reinterpret_cast<uintptr_t>(a) | 1) == (reinterpret_cast<uintptr_t>(b) | 1);
    }
    /// The address in the upper 48 bits.
    static uint64_t key(const void* storage) noexcept { return reinterpret_cast<uintptr_t>(storage) << 16; }

    /// Both places of a storage lie on one cache line. The three words are written one by one: a thread that reads two
    /// of them of different writes finds that the record is of another storage.
    struct alignas(32) Place {
        std::atomic<uint64_t> flags{0};  ///< key of the storage, Record::flags in the lower 16 bits; 0: free
        std::atomic<WriteId> last{0};
        std::atomic<OpSeq> seq{OpSeq{}};

        bool holds(const void* storage) const noexcept {
            return (flags.load(std::memory_order_relaxed) ^ key(storage)) <= 0xffff;
        }
        Known known() const noexcept {
            return {last.load(std::memory_order_relaxed), static_cast<uint16_t>(flags.load(std::memory_order_relaxed))};
        }
        bool free() const noexcept { return flags.load(std::memory_order_relaxed) == 0; }
        void hold(const void* storage, unsigned known, WriteId id, OpSeq written) noexcept {
            last.store(id, std::memory_order_relaxed);
            seq.store(written, std::memory_order_relaxed);
            flags.store(key(storage) | known, std::memory_order_relaxed);
        }
    };

    const Place* place_of(const void* storage) const noexcept {
        const size_t at = slot(storage);
        if (places_[at].holds(storage)) return &places_[at];
        return places_[at ^ 1].holds(storage) ? &places_[at ^ 1] : nullptr;
    }
    /// Where the storage is remembered, or will be: of its two places the one that was written longer ago makes room.
    Place& home(const void* storage) noexcept {
        Place& first = places_[slot(storage)];
        Place& second = places_[slot(storage) ^ 1];
        if (first.holds(storage)) return first;
        if (second.holds(storage)) return second;
        if (first.free()) return first;
        if (second.free()) return second;
        return first.seq.load(std::memory_order_relaxed) > second.seq.load(std::memory_order_relaxed) ? second : first;
    }

    HugeArray<Place> places_{kPlaces};
    HugeArray<AtomicRecord<Record>> ring_{kRing};
    std::atomic<WriteId> next_{0};
    StepStarts steps_;
    IntegerWraps wraps_;
};

}  // namespace numsan
