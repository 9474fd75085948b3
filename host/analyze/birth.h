// Where a bad value came from: one op that made a kind of value none of its inputs had. What findings are built from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/analyze/features.h"
#include "host/analyze/mechanisms.h"
#include "host/core/adapter_abi.h"
#include "host/stacks/stack_source.h"

namespace numsan {

using BirthId = uint64_t;  ///< 1, 2, ... in the order births were seen; 0 is "none"

/// What ran: an op, its stack, and the node and scopes around it.
struct OpContext {
    int64_t seq = 0;   ///< number of the op in program order
    int64_t step = 0;  ///< finished optimizer steps
    StackId stack = 0;
    bool in_module = false;
    bool in_optimizer = false;
    bool in_data_loader = false;
    bool touched = false;      ///< an operand was computed from parameters
    bool from_module = false;  ///< an operand was computed inside a module, or from such a value
    /// an operand is a parameter, a gradient or an average of them, gradients are off, no module runs
    bool on_state = false;
    bool after_compiled = false;       ///< the last node that ended on this thread was a compiled region's
    double headroom = 0;               ///< option of that name; 0: nothing is said of large values
    uint16_t crowded = 0;              ///< bit i: output i of a narrow type is close to the largest number of it
    bool underflow = true;             ///< zeros that values too small for their type turned into are to be reported
    bool in_backward = false;          ///< inside a backward(): a node runs, or a hook between nodes
    int64_t last_parameter_read = -1;  ///< number of this thread's last forward op that read a parameter
    bool outsider = false;       ///< a thread without Python in a Python process, outside every node: a library's own
    bool ignored = false;        ///< inside record_function("numsan:ignore")
    int gone = 0;                ///< operands that had died or changed before the op was looked at
    const char* node = nullptr;  ///< running autograd node, null outside a backward pass
    uint64_t node_sequence = ~uint64_t(0);
    uint64_t node_thread = 0;
    int64_t graph_task = -1;
    /// bits of TensorKin for the first inputs, asked before any lock was taken; null when not asked
    const uint32_t* kin = nullptr;
};
inline constexpr int32_t kMaxKin = 16;  ///< length of OpContext::kin

/// What autograd knows of operand number `index`.
inline uint32_t kin_of(const OpContext& context, const TensorView& input, std::ptrdiff_t index) {
    const bool asked = context.kin != nullptr && index >= 0 && index < kMaxKin;
    return asked ? context.kin[index] : input.flags >> kKinShift;
}

/// For copies of an event's operands that are judged when the context's `kin` is gone.
inline void keep_kin(TensorView* inputs, int32_t count, const OpContext& context) {
    for (int32_t i = 0; context.kin != nullptr && i < count && i < kMaxKin; ++i) {
        inputs[i].flags |= context.kin[i] << kKinShift;
    }
}

/// The op that made an autograd node, found by the node's number.
struct ForwardRecord {
    const OpInfo* op = nullptr;
    StackId stack = 0;
    BirthId birth = 0;  ///< the bad value this op made itself, if it did
    int64_t seq = -1;   ///< its number in program order
};

struct Birth {
    BirthId id = 0;
    KindSet kind = 0;  ///< exactly one bit; 0 for values that are finite, and too small or too large for their type
    std::string op;
    std::string reader;  ///< the first op that read a value which no op was seen to make
    Mechanism mechanism = Mechanism::None;
    bool intended = false;  ///< an infinity the program wrote down: no finding by itself
    bool escaped = false;
    bool ignored = false;  ///< made inside record_function("numsan:ignore"): no finding, wherever it goes
    bool scaler = false;   ///< a loss scaler caught it: its job, no finding
    Phase phase = Phase::Forward;
    int64_t seq = 0;
    int64_t step = 0;
    StackId stack = 0;
    std::string node;
    bool has_forward = false;
    std::string forward_op;
    StackId forward_stack = 0;
    /// it arrived ahead of its use (batches do): its step and number are those of the first op that reads it
    bool waits = false;
    bool unread = false;           ///< it arrived, and no op has read it yet
    const void* holder = nullptr;  ///< TensorView::impl of the tensor that held it, where no op was seen to make it
    std::optional<Place> made_at;  ///< of a birth in another process, whose stack nobody has here
    int64_t forward_seq = 0;       ///< of the op that made the node; the birth's own outside a backward pass
    Features features;
    /// an infinity of it passed through a root: what it should have been may well be small
    bool shrunk = false;
    /// kind 0: finite values close to the largest number of their type, or cut to it; else flushed to zero
    bool crowded = false;
    const void* in_place = nullptr;  ///< storage of the offending output, where the op wrote it in place
    std::vector<TensorFact> outputs;
    std::vector<TensorFact> inputs;
    std::vector<std::string> evidence;
    std::vector<PastMagnitude> history;  ///< asked for when it escapes
};

}  // namespace numsan
