// Where a bad value came from: one op that made a kind of value none of its inputs had. What findings are built from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/base/health.h"
#include "host/base/ids.h"
#include "host/cause/features.h"
#include "host/finding/chain_link.h"
#include "host/finding/collective_fact.h"
#include "host/finding/kernel_launch.h"
#include "host/finding/labels.h"
#include "host/finding/mechanisms.h"
#include "host/finding/place.h"
#include "host/finding/tensor_fact.h"
#include "host/stacks/kept_stack.h"
#include "host/stacks/range_path.h"
#include "host/track/birth_id.h"

namespace numsan {

/// The last op that met a bad value: kept with the option `escape=any` alone.
struct LastMet {
    Fate fate = Fate::Unread;
    bool within_derivative = false;  ///< the value ended in the node of torch's that made it
    std::string op;
    KeptStack stack;
    int64_t step = 0;
    OpSeq seq{};
};

struct Birth {
    BirthId id = 0;
    KindSet kind = 0;  ///< exactly one bit; 0 for values that are finite, and too small or too large for their type
    std::string op;
    std::string reader;  ///< the first op that read a value which no op was seen to make
    Mechanism mechanism = Mechanism::None;
    bool intended = false;  ///< an infinity the program wrote down: no finding by itself
    bool literal = false;   ///< a number that the program wrote down, NaN as a mark for what is missing
    bool escaped = false;
    bool ignored = false;  ///< made inside record_function("numsan:ignore"): no finding, wherever it goes
    bool scaler = false;   ///< a loss scaler caught it: its job, no finding
    Phase phase = Phase::Forward;
    FirstMet met = FirstMet::Unknown;
    OpSeq seq{};
    int64_t step = 0;
    KeptStack stack;
    RangePath ranges;
    std::string node;
    NodeSeq node_sequence = NodeSeq::None;
    bool has_forward = false;
    std::string forward_op;
    KeptStack forward_stack;
    RangePath forward_ranges;
    KeptStack left_finite;  ///< of a value that no op made: where an op wrote the memory before, and left it finite
    /// it arrived ahead of its use (batches do): its step and number are those of the first op that reads it
    bool waits = false;
    bool unread = false;           ///< it arrived, and no op has read it yet
    const void* holder = nullptr;  ///< TensorView::impl of the tensor that held it, where no op was seen to make it
    /// An earlier birth that had escaped when this one did, of a value that the program may have read and given back as
    /// this one: a finding of its own where that one is none, or a milder one. 0: none.
    BirthId repeats = 0;
    std::optional<Place> made_at;  ///< of a birth in another process, whose stack is not known here
    OpSeq forward_seq{};           ///< of the op that made the node; the birth's own outside a backward pass
    Features features;
    /// an infinity of it passed through a root: what it should have been may well be small
    bool through_root = false;
    /// kind 0: finite values close to the largest number of their type, or cut to it; else flushed to zero
    bool near_overflow = false;
    const void* in_place = nullptr;  ///< storage of the offending output, where the op wrote it in place
    std::vector<TensorFact> outputs;
    std::vector<TensorFact> inputs;
    std::vector<KernelLaunch> launches;  ///< of its op, where they are watched
    std::vector<std::string> evidence;
    std::vector<PastMagnitude> history;  ///< asked for when it escapes
    std::vector<ChainLink> chain;        ///< the same
    LastMet last;
    std::optional<CollectiveFact> received;   ///< of a value that came with a collective
    uint16_t sent = 0;                        ///< collectives that took it to other ranks since it escaped
    std::vector<CollectiveFact> sent_before;  ///< the first of those that took it there before
};

}  // namespace numsan
