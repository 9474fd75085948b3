// Looks on the device against their source on the host: what a scan leaves to the launch behind it, at small tensors.
#include <algorithm>
#include <deque>

#include "tests/gpu/probe/twin.h"
#include "tests/gpu/probe/twins.h"

namespace numsan::gpu::probe {
namespace {

/// Ops of one output and several operands, of many sizes, layouts and types. Half the operands are bad.
class Ops {
  public:
    std::vector<Paired> outputs;
    Operands operands;

    /// Six outputs, two of three bad, with two operands each.
    Ops(Subject& subject, CUstream stream, uint64_t seed)
        : stream_(stream), largest_(int64_t(subject.max_bytes)), random_(subject.seed + seed) {
        for (int i = 0; i < 6; ++i) {
            outputs.push_back(tensor(i % 3 != 2));
            operands.push_back({tensor(random_() % 2 == 0), tensor(random_() % 2 == 0)});
        }
    }

    /// Bad outputs that share their operands: these are more, counted for each output, than a look has room for.
    static Ops many(Subject& subject, CUstream stream, uint64_t seed) {
        constexpr uint32_t kOutputs = 5, kOperands = std::min(200u, kLookedInputs / 2);
        static_assert((kOutputs - 1) * kOperands > kLookedInputs);
        return Ops(subject, stream, seed, kOutputs, kOperands);
    }

  private:
    Ops(Subject& subject, CUstream stream, uint64_t seed, uint32_t output_count, uint32_t operand_count)
        : stream_(stream), largest_(std::min<int64_t>(600, int64_t(subject.max_bytes))), random_(subject.seed + seed) {
        std::vector<Paired> shared;
        for (uint32_t k = 0; k < operand_count; ++k) shared.push_back(tensor(random_() % 2 == 0));
        for (uint32_t i = 0; i < output_count; ++i) outputs.push_back(tensor(true));
        operands.assign(output_count, shared);
    }

    struct Memory {
        Lanes lanes;
        Copied copied;
        Shaped shaped;
        Memory(DType dtype, int64_t elements, bool bad, bool gaps, CUstream stream, std::mt19937_64& random)
            : lanes(dtype, elements * info(dtype).lanes),
              copied(filled(lanes, dtype, bad, random), dtype, stream),
              shaped(gaps ? Shaped(lanes.data(), dtype, {elements / 4, 3}, {4, 1})
                          : Shaped(lanes.data(), dtype, elements)) {}
        static Lanes& filled(Lanes& lanes, DType dtype, bool bad, std::mt19937_64& random) {
            fill(lanes, dtype, bad, random);
            return lanes;
        }
    };

    Paired tensor(bool bad) {
        const std::vector<DType> types = all_types();
        const DType dtype = types[random_() % types.size()];
        const bool is_small = random_() % 3 == 0, gaps = random_() % 3 == 0;
        const int64_t bytes = is_small ? 256 + int64_t(random_() % 300) : 20000 + int64_t(random_() % 60000);
        const int64_t elements = std::min(bytes, largest_) / info(dtype).element_bytes();
        Memory& one = memory_.emplace_back(dtype, elements, bad, gaps, stream_, random_);
        return one.copied.paired(one.shaped);
    }

    CUstream stream_;
    const int64_t largest_;
    std::mt19937_64 random_;
    std::deque<Memory> memory_;
};

/// How many operands were reported.
size_t compare(Phase& phase, Disagreements& wrong, const Stream& stream, const Ops& ops, TwinOptions options,
               const std::string& what) {
    size_t reported = 0;
    options.look = Look::Always;
    wrong.add("look, " + what, compare_with_twin(phase.subject, stream, ops.outputs, options, ops.operands, &reported));
    return reported;
}

}  // namespace

void looks(Phase& phase, Disagreements& wrong) {
    const Stream stream;
    size_t reported = 0;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
        const Ops ops(phase.subject, stream, seed);
        const auto check_with = [&](const TwinOptions& options, const std::string& what) {
            reported += compare(phase, wrong, stream, ops, options, what);
        };
        check_with({}, "several outputs");
        check_with({.size = Size::Large}, "several outputs, the large table");
        check_with({.exact = true}, "several outputs, told");
        check_with({.gate = GateState::Closed}, "behind a closed gate");
        check_with({.gate = GateState::Open}, "behind an open gate");
        check_with({.size = Size::Large, .gate = GateState::Open}, "behind an open gate, the large table");
    }
    const Ops many = Ops::many(phase.subject, stream, 5);
    const size_t of_many = compare(phase, wrong, stream, many, {.shared = true}, "more operands than it has room for");
    if (wrong.count() == 0 && of_many != kLookedInputs) throw Wrong("a look was given too few operands");
    phase.data["looks"] = {{"operands", reported}, {"operands_of_many", of_many}, {"room", kLookedInputs}};
}

void looks_in_replays(Phase& phase, Disagreements& wrong) {
    const Stream stream;
    constexpr int kReplays = 2;
    const Ops ops(phase.subject, stream, 6), many = Ops::many(phase.subject, stream, 7);
    size_t reported = 0;
    const auto check_with = [&](const Ops& all, const TwinOptions& options, const std::string& what) {
        reported += compare(phase, wrong, stream, all, options, what);
    };
    check_with(ops, {.replays = kReplays}, "replays");
    check_with(ops, {.size = Size::Large, .replays = kReplays}, "replays, the large table");
    check_with(ops, {.gate = GateState::Closed, .replays = kReplays}, "replays behind a closed gate");
    check_with(ops, {.gate = GateState::Open, .replays = kReplays}, "replays behind an open gate");
    check_with(many, {.shared = true, .replays = kReplays}, "replays with more operands than a look has room for");
    phase.data["looks_in_replays"] = {{"replays", kReplays}, {"operands", reported}};
}

}  // namespace numsan::gpu::probe
