// The scan kernels' source, block by block on the host, over tables of tensors of any element type, sizes, strides and
// offset, against a loop over the logical elements of each. Buffers have exactly the tensor's bytes, so the address
// sanitizer sees a read outside; what lies between elements is the pattern that would change every answer.
#include <map>
#include <memory>
#include <optional>

#include "tests/cuda/emulation.h"
#include "tests/fuzz/any_tensor.h"
#include "tests/fuzz/targets.h"

namespace numsan::fuzz {
namespace {

using gpu::Admission;
using gpu::HitSlot;

/// An output or operand, and what is true of it. It may be in the table several times.
struct Subject {
    Tensor tensor;
    Expected expected;
    uint8_t flags = 0;  ///< kRaisesGate, kExact

    TensorView view() const {
        TensorView out = tensor.view();
        out.device = Device::Cuda;
        out.flags = kScannable;
        return out;
    }
};

constexpr int kMostOperands = 7;

/// Nanoseconds that an exact pass over an output and its operands costs at most.
constexpr uint64_t kMostPass = [] {
    const uint64_t bytes = uint64_t(1 + kMostOperands) * kMostElements * info(DType::Complex128).element_bytes();
    return std::max(gpu::kBlockPassNanoseconds + bytes / gpu::kBlockBytesPerNanosecond,
                    gpu::kGridPassNanoseconds + bytes / gpu::kGridBytesPerNanosecond);
}();

/// Bytes that belong to no element become those of the largest pattern.
void trap_gaps(Tensor& tensor) {
    const int64_t bytes = info(tensor.dtype).element_bytes();
    std::vector<bool> used(tensor.memory.size());
    for (int64_t index = 0; index < tensor.elements; ++index) {
        const int64_t at = int64_t(tensor.shift) + tensor.first + offset_of(tensor, index) * bytes;
        std::fill_n(used.begin() + at, bytes, true);
    }
    for (size_t at = 0; at < used.size(); ++at) {
        if (!used[at]) tensor.memory[at] = 0xff;
    }
}

bool has_negative_stride(const Tensor& tensor) {
    for (size_t d = 0; d < tensor.sizes.size(); ++d) {
        if (tensor.sizes[d] > 1 && tensor.strides[d] < 0) return true;
    }
    return false;
}

/// What the kernels do not read: the host counts it as not looked at.
Admission admission_of(const Subject& subject) {
    const Tensor& tensor = subject.tensor;
    if (tensor.elements == 0) return Admission::Empty;
    const bool aligned = reinterpret_cast<uintptr_t>(tensor.data()) % info(tensor.dtype).lane_bytes == 0;
    return aligned && !has_negative_stride(tensor) ? Admission::Added : Admission::Unsupported;
}

void require_health(const HitSlot& hit, const Subject& subject) {
    const char* name = info(subject.tensor.dtype).name;
    const Health got = gpu::to_health(hit), &want = subject.expected.health;
    require(hit.dtype == subject.tensor.dtype, "the element type", name);
    require(got.elements == want.elements && got.finite == want.finite, "elements and finite lanes", name);
    require(got.nan == want.nan && got.pos_inf == want.pos_inf && got.neg_inf == want.neg_inf, "bad lanes", name);
    require(got.zero == want.zero && got.subnormal == want.subnormal, "zeros and subnormals", name);
    require(got.min == want.min && got.max == want.max, "the range", name);
    require(got.absmin == want.absmin && got.absmax == want.absmax, "the range of magnitudes", name);
    require(got.first_bad == want.first_bad && got.first_bad_bits == want.first_bad_bits, "the first bad one", name);
    require(got.first_bad_kind == want.first_bad_kind, "the kinds of the first bad element", name);
}

/// Launches over the same words, one after the other, and what each has to leave behind.
class Launches {
  public:
    Launches(const std::vector<Subject>& operands, uint8_t shape, uint8_t ring, uint8_t seed)
        : operands_(operands), words_(1u << ring % 10, 1024), reader_(words_.ring(), words_.capacity()) {
        grid_ = gpu::Grid{1u + shape % 64, 1, seed};
        gated_ = (shape & 0x40) != 0;
        open_ = (shape & 0x80) != 0;
        for (const Subject& operand : operands) views_.push_back(operand.view());
    }

    /// An output; launches what is there first if the table is full.
    void add(const Subject& output) {
        if (!filler_) begin();
        const auto slot = static_cast<uint32_t>(outputs_.size());
        Admission got = filler_->add(output.view(), slot, slot, output.flags, inputs_);
        if (got == Admission::Full) {
            launch();
            begin();
            got = filler_->add(output.view(), 0, 0, output.flags, inputs_);
            if (got == Admission::Full) return;  // the operands leave no room
        }
        require(got == admission_of(output), "admission", info(output.tensor.dtype).name);
        if (got == Admission::Added) outputs_.push_back(&output);
    }

    void launch() {
        if (!filler_) return;
        const bool any = filler_->close();
        require(any == !outputs_.empty(), "a table with outputs has chunks");
        words_.gate = open_;
        words_.raise = 0;
        std::fill(words_.results.begin(), words_.results.end(), gpu::RangeResult{});
        words_.state.first_offender = gpu::kNoOffender;
        // Nothing is owed: a pass that cannot be paid for is told in its result alone, and when it is depends on time.
        std::fill(std::begin(words_.state.paid_until), std::end(words_.state.paid_until), 0);
        const gpu::ScanState before = words_.state;
        const uint32_t base = words_.sequence + 1;
        if (any) gpu::run(*filler_, grid_);
        require(words_.at_rest(), "the scratch is at rest");
        if (any) require(words_.sequence == base && words_.replays.done == base, "the replay is counted");
        if (any && gated_) require(words_.gate == 0, "the gate is closed");
        const std::map<uint32_t, std::vector<HitSlot>> hits = take_hits();
        if (gated_ && !open_) {
            require(hits.empty() && words_.raise == 0, "nothing is told behind a closed gate");
        } else {
            require_told(base, hits, before);
        }
        outputs_.clear();
        filler_.reset();
    }

  private:
    static_assert(gpu::ScanTableLarge::kItemCapacity * kMostPass * gpu::kExactShare < gpu::kMostOwed,
                  "a launch that owes nothing before pays for all its exact passes");

    void begin() {
        filler_ = std::make_unique<gpu::BatchFiller>();
        gpu::ScanHeader header = words_.header();
        words_.put_into_graph(header);
        if (gated_) {
            header.gate = &words_.gate;
            header.flags = gpu::kClearsGate;
        }
        filler_->begin(header);
        inputs_ = filler_->add_inputs(views_.data(), static_cast<int>(views_.size()));
        exact_.clear();
        for (int i = 0; i < inputs_.count; ++i) {
            const int at = filler_->position_of(inputs_.first + i);
            require(at >= 0 && size_t(at) < operands_.size(), "the position of an operand");
            require(admission_of(operands_[size_t(at)]) == Admission::Added, "operands that can be read");
            exact_.push_back(&operands_[size_t(at)]);
        }
    }

    /// By the output's slot: its own slot of the ring, then its operands'.
    std::map<uint32_t, std::vector<HitSlot>> take_hits() {
        std::map<uint32_t, std::vector<HitSlot>> hits;
        for (const HitSlot& slot : words_.take(reader_)) {
            require(slot.role == gpu::HitRole::Input || !hits.contains(slot.slot), "one hit an output");
            hits[slot.slot].push_back(slot);
        }
        return hits;
    }

    /// The ring was empty `before`.
    void require_told(uint32_t base, const std::map<uint32_t, std::vector<HitSlot>>& hits,
                      const gpu::ScanState& before) {
        const uint64_t taken = words_.state.head - before.head, slots = 1u + inputs_.count;
        uint64_t lost = 0, first = gpu::kNoOffender, told = 0;
        bool raises = false;
        for (uint32_t i = 0; i < outputs_.size(); ++i) {
            const Subject& output = *outputs_[i];
            const gpu::RangeResult& result = words_.results[i];
            const Range& want = output.expected.range;
            const char* name = info(output.tensor.dtype).name;
            require(result.sequence_plus_one == uint64_t(base) + i + 1, "every output has a result", name);
            require(result.largest == want.max_magnitude, "the largest magnitude", name);
            require(result.smallest_nonzero == want.min_nonzero_magnitude, "the smallest magnitude", name);
            const bool hit = hits.contains(i), looked = want.suspicious || (output.flags & gpu::kExact) != 0;
            require(result.bad == (want.suspicious ? hit ? gpu::kHitReported : gpu::kHitDropped
                                   : hit           ? gpu::kFiniteReported
                                                   : gpu::kFinite),
                    "the verdict", name);
            require(looked || !hit, "only what is asked for is told", name);
            // A clean output leaves half of the ring to bad ones, and is not counted when it finds no room.
            const uint64_t room = want.suspicious ? words_.capacity() : words_.capacity() / 2;
            if (looked && !hit) require(taken + slots > room, "what finds room is told", name);
            if (want.suspicious && !hit) lost += slots;
            if (want.suspicious) first = std::min(first, (uint64_t(base) + i) << 32 | i);
            raises |= want.suspicious && (output.flags & gpu::kRaisesGate) != 0;
            if (!hit) continue;
            ++told;
            require(hits.at(i).back().ready - before.head <= room, "half of the ring is left to bad outputs", name);
            require_hit(hits.at(i), output, base + i);
        }
        require(told == hits.size(), "no hit of nobody");
        require(words_.state.dropped - before.dropped == lost, "what found no room is counted");
        require(words_.state.first_offender == first, "the first offender");
        require(words_.raise == raises, "the gate is raised by a bad output that may");
    }

    void require_hit(const std::vector<HitSlot>& slots, const Subject& output, uint32_t sequence) {
        require(slots.size() == size_t(1) + inputs_.count && slots[0].inputs == inputs_.count, "operands follow");
        for (size_t i = 0; i < slots.size(); ++i) {
            require(slots[i].sequence == sequence, "the sequence of a hit");
            require((slots[i].role == gpu::HitRole::Output) == (i == 0), "the output comes first");
            require_health(slots[i], i == 0 ? output : *exact_[i - 1]);
        }
    }

    const std::vector<Subject>& operands_;
    std::vector<TensorView> views_;
    gpu::Words words_;
    gpu::HitReader reader_;
    gpu::Grid grid_;
    bool gated_, open_;
    std::unique_ptr<gpu::BatchFiller> filler_;
    gpu::InputItems inputs_;
    std::vector<const Subject*> exact_;    ///< the operands in the table
    std::vector<const Subject*> outputs_;  ///< by slot
};

std::optional<Subject> subject(Bytes& bytes, std::string_view pattern) {
    Subject out;
    out.flags = static_cast<uint8_t>(bytes.next() & (gpu::kRaisesGate | gpu::kExact));
    if (!build(bytes, out.tensor, Place::Device, pattern)) return std::nullopt;
    trap_gaps(out.tensor);
    out.expected = expected_of(out.tensor);
    return out;
}

}  // namespace

/// Shape of the launch, room in the ring, order of the blocks, how many tensors and how often; then each tensor, and
/// last the bytes that fill all of them.
void fuzz_kernel(std::string_view input) {
    constexpr int64_t kMostWork = 1 << 16;  // elements of a table
    Bytes bytes(input);
    const uint8_t shape = bytes.next(), ring = bytes.next(), seed = bytes.next(), counts = bytes.next();
    const size_t half = bytes.rest().size() / 2;
    const std::string_view pattern = bytes.rest().substr(half);
    std::vector<Subject> operands, outputs;
    for (int i = 0, all = 1 + (counts >> 3) % 8; i < all + counts % (kMostOperands + 1); ++i) {
        std::optional<Subject> made = subject(bytes, pattern);
        if (!made) return;
        (i < all ? outputs : operands).push_back(std::move(*made));
    }
    int64_t work = 0;
    for (const Subject& output : outputs) work += output.tensor.elements + 1;
    const int64_t rounds = std::min<int64_t>(kMostWork / work, int64_t(1) << (counts >> 6) * 3);
    Launches launches(operands, shape, ring, seed);
    for (int64_t round = 0; round < std::max<int64_t>(rounds, 1); ++round) {
        for (const Subject& output : outputs) launches.add(output);
    }
    launches.launch();
}

}  // namespace numsan::fuzz
