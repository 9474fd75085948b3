#include "tests/gpu/probe/twin.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <sstream>

namespace numsan::gpu::probe {
namespace {

/// What a launch left: a result for each output, and the hits by output.
struct Left {
    std::vector<RangeResult> results;
    std::vector<HitSlot> slots;
    uint64_t dropped = 0;
    std::vector<const HitSlot*> hits{};  ///< of each output, null: none; its operands' slots follow it
    size_t operands = 0;

    /// False where a hit is of no output, or the second of one, or an operand is of no hit.
    bool sort(size_t outputs) {
        hits.assign(outputs, nullptr);
        for (size_t i = 0; i < slots.size();) {
            const HitSlot& hit = slots[i];
            if (hit.role != HitRole::Output || hit.slot >= outputs || hits[hit.slot] != nullptr) return false;
            if (hit.inputs >= slots.size() - i) return false;
            hits[hit.slot] = &hit;
            for (++i; i <= size_t(&hit - slots.data()) + hit.inputs; ++i) {
                if (slots[i].role != HitRole::Input || slots[i].slot != hit.slot) return false;
                ++operands;
            }
        }
        return true;
    }
    /// The slot of an output's operand, null: it has none.
    const HitSlot* operand(size_t output, uint8_t argument) const {
        const HitSlot* hit = hits[output];
        if (hit == nullptr) return nullptr;
        const HitSlot* end = hit + 1 + hit->inputs;
        const HitSlot* found = std::find_if(hit + 1, end, [&](const HitSlot& s) { return s.argument == argument; });
        return found != end ? found : nullptr;
    }
};

template <class ViewOf>
void add_ops(BatchFiller& filler, const std::vector<Paired>& tensors, const Operands& operands,
             const TwinOptions& options, ViewOf view_of) {
    InputItems inputs;
    for (size_t i = 0; i < tensors.size(); ++i) {
        std::vector<TensorView> views;
        for (size_t k = 0; i < operands.size() && k < operands[i].size(); ++k) views.push_back(view_of(operands[i][k]));
        if (i == 0 || !options.shared) inputs = filler.add_inputs(views.data(), int(views.size()));
        const auto number = static_cast<uint32_t>(i);
        const uint8_t flags = options.exact ? uint8_t(kExact) : uint8_t(0);
        if (inputs.count != views.size() ||
            filler.add(view_of(tensors[i]), number, number, flags, inputs) != Admission::Added)
            throw Wrong("output " + std::to_string(i) + " or an operand found no room in a table");
    }
}

class OnDevice {
  public:
    OnDevice(Subject& subject, CUstream stream, const std::vector<Paired>& tensors, const Operands& operands,
             const TwinOptions& options)
        : subject_(subject),
          stream_(stream),
          options_(options),
          outputs_(tensors.size()),
          table_(subject, 0, gate_of(options)) {
        add_ops(table_.filler(), tensors, operands, options, [](const Paired& one) { return one.device_view(); });
        table_.close(options.size, options.look);
        table_.restart_count(stream);
        if (options.replays != 0) graph_.emplace(stream, [&] { table_.launch(stream); });
    }

    Left run() {
        RangeResult* results = subject_.state().results_host;
        std::fill_n(results, outputs_, RangeResult{});
        const uint64_t dropped = dropped_slots(subject_);
        forget_debt(subject_, stream_);
        if (options_.gate != GateState::None) table_.set_gate(options_.gate == GateState::Open, stream_);
        graph_ ? graph_->launch(stream_) : table_.launch(stream_);
        check("cuStreamSynchronize", gpu().stream_synchronize(stream_));
        return Left{std::vector<RangeResult>(results, results + outputs_), take_hits(subject_),
                    dropped_slots(subject_) - dropped};
    }
    std::string not_at_rest() const { return table_.not_at_rest(stream_); }
    uint32_t blocks() const { return table_.blocks(); }

  private:
    static Table::Gate gate_of(const TwinOptions& options) {
        const bool gated = options.gate != GateState::None;
        return {.is_behind = gated, .clears = gated, .counts = options.replays != 0};
    }
    Subject& subject_;
    const CUstream stream_;
    const TwinOptions& options_;
    const size_t outputs_;
    Table table_;
    std::optional<Graph> graph_;
};

/// In blocks as many as on the device, and another order.
class OnHost {
  public:
    OnHost(const std::vector<Paired>& tensors, const Operands& operands, const TwinOptions& options, uint32_t blocks)
        : options_(options), outputs_(tensors.size()), blocks_(blocks) {
        ScanHeader header = words().header();
        LookList* const looks = header.looks;
        if (options.gate != GateState::None) {
            header.gate = &words().gate;
            header.flags = kClearsGate;
        }
        if (options.replays != 0) words().put_into_graph(header);
        words().sequence = 0;
        filler().begin(header);
        add_ops(filler(), tensors, operands, options, [](const Paired& one) { return one.on_host; });
        if (!filler().close()) throw Wrong("a table has nothing to launch");
        ScanHeader& closed = filler().header();
        if (options.look == Look::Always && closed.looks == nullptr) {
            closed.looks = looks;
            closed.look_chunks = 4 * closed.chunks;
        }
    }

    Left run() {
        static HitReader reader(words().ring(), words().capacity());
        std::fill(words().results.begin(), words().results.end(), RangeResult{});
        std::memset(&words().state.paid_until, 0, sizeof words().state.paid_until);
        words().gate = options_.gate == GateState::Open;
        const uint64_t dropped = reader.dropped();
        gpu::run(filler(), Grid{blocks_, 1, 7});
        if (!words().at_rest()) throw Wrong("the scratch of the host's twin is not at rest");
        const auto results = words().results.begin();
        return Left{std::vector<RangeResult>(results, results + int64_t(outputs_)), words().take(reader),
                    reader.dropped() - dropped};
    }
    bool looks() const { return filler().header().looks != nullptr; }

  private:
    static Words& words() {
        static Words all(1024, 64, kBatchOutputs);
        return all;
    }
    static BatchFiller& filler() {
        static BatchFiller one;
        return one;
    }
    const TwinOptions& options_;
    const size_t outputs_;
    const uint32_t blocks_;
};

/// But for the ticket, which comes first, and for how many operands follow: these are counted together.
bool same_hit(const HitSlot& a, const HitSlot& b) {
    static_assert(offsetof(HitSlot, sequence) == sizeof a.ready);
    static_assert(offsetof(HitSlot, inputs) + sizeof a.inputs == sizeof a);
    return std::memcmp(&a.sequence, &b.sequence, offsetof(HitSlot, inputs) - sizeof a.ready) == 0;
}

std::string difference_of(const HitSlot& hit, const HitSlot& twins) {
    if (same_hit(hit, twins)) return "";
    const std::string health = difference(to_health(hit), to_health(twins));
    return health.empty() ? "the hit has other bytes; " : health;
}

std::string difference_of(const RangeResult& got, const RangeResult& want, const HitSlot* hit, const HitSlot* twins) {
    std::ostringstream out;
    NUMSAN_COMPARE(sequence_plus_one)
    NUMSAN_COMPARE(bad)
    NUMSAN_COMPARE(largest)
    NUMSAN_COMPARE(smallest_nonzero)
    if ((hit == nullptr) != (twins == nullptr)) {
        out << (hit == nullptr ? "no hit; " : "a hit; ");
    } else if (hit != nullptr) {
        out << difference_of(*hit, *twins);
    }
    return out.str();
}

/// How many operands the hits have to be followed by.
size_t wanted_operands(const Left& left, const Operands& operands, bool looks) {
    size_t wanted = 0;
    for (size_t i = 0; i < operands.size(); ++i) wanted += left.hits[i] != nullptr ? operands[i].size() : 0;
    return looks ? std::min<size_t>(wanted, kLookedInputs) : wanted;
}

std::string compare_operands(const Left& device, const Left& host, const Operands& operands) {
    std::ostringstream out;
    for (size_t i = 0; i < operands.size(); ++i) {
        for (size_t k = 0; k < operands[i].size(); ++k) {
            const TensorView& view = operands[i][k].on_host;
            const auto argument = static_cast<uint8_t>(k);
            const HitSlot *got = device.operand(i, argument), *twins = host.operand(i, argument);
            std::string text;
            if (got != nullptr && twins != nullptr) text += difference_of(*got, *twins);
            if (got != nullptr) text += difference(to_health(*got), reference_scan(view).health);
            if (!text.empty()) out << info(view.dtype).name << " operand " << k << " of output " << i << ": " << text;
        }
    }
    return out.str();
}

}  // namespace

std::string compare_with_twin(Subject& subject, CUstream stream, const std::vector<Paired>& tensors,
                              const TwinOptions& options, const Operands& operands, size_t* reported) {
    OnDevice on_device(subject, stream, tensors, operands, options);
    OnHost on_host(tensors, operands, options, on_device.blocks());
    std::ostringstream out;
    const bool oracle = options.oracle && options.gate != GateState::Closed;
    for (int launch = 0; launch < std::max(1, options.replays); ++launch) {
        Left device = on_device.run(), host = on_host.run();
        if (!host.sort(tensors.size())) throw Wrong("the host's twin reports hits of no output");
        const size_t wanted = wanted_operands(host, operands, on_host.looks());
        if (host.operands != wanted || host.dropped != 0) throw Wrong("the host's twin leaves operands out");
        out << on_device.not_at_rest();
        if (device.dropped != 0) out << device.dropped << " slots were dropped; ";
        if (!device.sort(tensors.size())) return out.str() + "the device reports hits of no output, or twice";
        if (device.operands != wanted) out << device.operands << " operands are reported, not " << wanted << "; ";
        if (reported != nullptr) *reported += device.operands;
        for (size_t i = 0; i < tensors.size(); ++i) {
            const TensorView& view = tensors[i].on_host;
            std::string text = difference_of(device.results[i], host.results[i], device.hits[i], host.hits[i]);
            if (oracle && !options.exact) text += difference(device.results[i], device.hits[i], view);
            if (oracle && options.exact && device.hits[i] != nullptr)
                text += difference(to_health(*device.hits[i]), reference_scan(view).health);
            if (!text.empty()) out << info(view.dtype).name << " output " << i << ": " << text;
        }
        out << compare_operands(device, host, operands);
        if (options.gate == GateState::Closed && !device.slots.empty()) out << "hits behind a closed gate; ";
    }
    return out.str();
}

}  // namespace numsan::gpu::probe
