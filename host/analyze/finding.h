// One finding, complete: what reports are written from. Plain data, owns its strings; field names follow the report
// schema.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/analyze/mechanisms.h"
#include "host/core/dtype.h"
#include "host/core/health.h"

namespace numsan {

enum class Severity : uint8_t { Error, Warning, Info };
enum class Phase : uint8_t { Forward, Backward, Optimizer, Data, Comm, Load };
enum class FindingKind : uint8_t { NaN, Inf, Overflow, Underflow };
enum class EscapeInto : uint8_t { Loss, Gradient, Parameter, OptimizerState, Buffer, Collective, Host, Output };

const char* to_string(Severity);
const char* to_string(Phase);
const char* to_string(FindingKind);
const char* to_string(EscapeInto);

/// A source line. `code` is the text of the line, stripped, when the file could be read.
struct Place {
    std::string file;
    int line = 0;
    std::string function;
    std::optional<std::string> code;
};

struct StackFrame {
    std::string kind;  ///< python, native, autograd, nvtx, module, compiled
    std::string function;
    std::optional<std::string> file;
    std::optional<int> line;
};

/// One tensor of the offending op. `health` is empty when the values were gone (overwritten in place) before they were
/// looked at.
struct TensorFact {
    std::string name;  ///< "input[0]", "output[0]"
    DType dtype = DType::Float32;
    std::vector<int64_t> shape;
    std::string device = "cpu";
    Health health{};
    bool exact = true;
};

struct CategoryGuess {
    std::string id;  ///< N1..N9 or U, a row of categories.def
    double confidence = 0;
};

struct ForwardOp {
    std::string op;
    std::string node;
    std::optional<Place> location;
    std::optional<std::string> module;
    std::vector<StackFrame> stack;
};

struct Escape {
    EscapeInto into = EscapeInto::Output;
    std::optional<std::string> name;
    int64_t step = 0;
    int64_t seq = 0;
};

struct Contaminated {
    EscapeInto kind = EscapeInto::Parameter;
    std::string name;
    int64_t since_step = 0;
};

/// Largest finite magnitude of a step; none where nothing finite is known.
struct PastMagnitude {
    int64_t step = 0;
    std::optional<double> absmax;
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
    int64_t seq = 0;
    std::optional<int> rank;
    std::optional<Place> location;
    std::optional<Place> user_location;
    std::optional<Place> backward_location;
    std::optional<std::string> module;
    std::vector<StackFrame> stack;
    std::optional<ForwardOp> forward;
    std::vector<TensorFact> outputs;
    std::vector<TensorFact> inputs;
    CategoryGuess category{"U", 0};
    std::vector<CategoryGuess> alternatives;
    std::vector<std::string> evidence;
    std::vector<std::string> help;
    Escape escape;
    std::vector<Contaminated> contaminated;
    std::vector<PastMagnitude> history;  ///< oldest first
    int64_t count = 1;
};

}  // namespace numsan
