// One finding, complete: what reports are written from. Plain data, owns its strings; field names follow the report
// schema.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/base/ids.h"
#include "host/finding/category_guess.h"
#include "host/finding/chain_link.h"
#include "host/finding/collective_fact.h"
#include "host/finding/help_line.h"
#include "host/finding/kernel_launch.h"
#include "host/finding/labels.h"
#include "host/finding/mechanisms.h"
#include "host/finding/place.h"
#include "host/finding/tensor_fact.h"

namespace numsan {

/// Kind of the frames that stand for ranges of the program, behind all others, innermost first.
inline constexpr char kRangeFrame[] = "nvtx";
/// Of those that stand for the generated kernels that may have run the op, before the ranges.
inline constexpr char kKernelFrame[] = "compiled";

struct StackFrame {
    std::string kind;  ///< python, native, autograd, nvtx, module, compiled
    std::string function;
    std::optional<std::string> file;
    std::optional<int> line;
};

struct ForwardOp {
    std::string op;
    std::string node;
    std::optional<Place> location;
    std::optional<std::string> module;
    std::vector<StackFrame> stack;
};

/// The last op that met a value which escaped nowhere.
struct LastUse {
    Fate fate = Fate::Unread;
    std::string op;  ///< none: Unread
    std::optional<Place> location;
};

struct Escape {
    EscapeInto into = EscapeInto::Output;
    std::optional<std::string> name;
    int64_t step = 0;
    OpSeq seq{};
    std::optional<LastUse> last{};  ///< of severity info
};

struct Contaminated {
    EscapeInto kind = EscapeInto::Parameter;
    std::string name;
    int64_t since_step = 0;
};

struct Finding {
    std::string id;
    std::string fingerprint;  ///< stable over runs: hash of mechanism, op, location, phase, module
    Mechanism mechanism = Mechanism::None;
    Severity severity = Severity::Error;
    FindingKind kind = FindingKind::NaN;
    bool first = false;    ///< of the findings of the run, in the order in which they are shown
    std::string happened;  ///< the title without the kind: "`aten::log` left its domain in 2 of 3 values"
    std::string op;
    Phase phase = Phase::Forward;
    int64_t step = 0;
    OpSeq seq{};
    std::optional<int> rank;
    std::optional<Place> location;
    std::optional<Place> user_location;
    std::optional<Place> backward_location;
    std::optional<Place> written_location;  ///< where an op left the memory finite that no op was seen to write since
    std::optional<std::string> module;
    std::vector<StackFrame> stack;
    std::optional<ForwardOp> forward;
    std::vector<TensorFact> outputs;
    std::vector<TensorFact> inputs;
    std::vector<KernelLaunch> launches;  ///< the last of its op, oldest first; empty: not known
    CategoryGuess category{"U", 0};
    std::vector<CategoryGuess> alternatives;
    std::vector<std::string> evidence;
    std::vector<WeighedFact> weighed;  ///< for and against all root causes
    std::vector<HelpLine> help;
    Escape escape;
    std::vector<Contaminated> contaminated;
    std::vector<PastMagnitude> history;  ///< oldest first
    std::vector<ChainLink> chain;        ///< in program order, without the birth itself
    int excerpt_line = 0;                ///< number of the first line of `excerpt`
    std::vector<std::string> excerpt;    ///< the lines around `location`, as they stand in the file
    int64_t count = 1;
    std::optional<CollectiveFact> received;  ///< it came with a collective
    std::vector<CollectiveFact> sent;        ///< collectives that took it to other ranks, the first kMostSent
    /// Operations of each group that had begun before the birth; none: not known.
    std::optional<std::map<std::string, uint64_t>> collectives{std::in_place};
    std::optional<std::string> dump;  ///< path of the file of what its op was called with
};

}  // namespace numsan
