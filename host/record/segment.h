// What a recording is made of: the calls into a session in one order, and what the session was answered meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/base/adapter_abi.h"
#include "host/base/health.h"
#include "host/birth/birth_exchange.h"
#include "host/finding/run_summary.h"
#include "host/stacks/open_ranges.h"
#include "host/stacks/process_rank.h"
#include "host/stacks/stack_source.h"

namespace numsan {

/// How a segment begins: with a call into the session, or with the return of a call that the session made, during which
/// other threads may have called, or this one again.
enum class Head : uint8_t {
    None,
#define NUMSAN_CALL(id) id,
#define NUMSAN_RETURN(id) id,
#include "host/record/segment_head.def"
#undef NUMSAN_CALL
#undef NUMSAN_RETURN
};
inline constexpr bool is_return(Head head) {
    switch (head) {
#define NUMSAN_CALL(id)
#define NUMSAN_RETURN(id) case Head::id:
#include "host/record/segment_head.def"
#undef NUMSAN_CALL
#undef NUMSAN_RETURN
        return true;
        default: return false;
    }
}
inline constexpr uint64_t kLastHead = [] {
    uint64_t count = 0;
#define NUMSAN_CALL(id) ++count;
#define NUMSAN_RETURN(id) ++count;
#include "host/record/segment_head.def"
#undef NUMSAN_CALL
#undef NUMSAN_RETURN
    return count;
}();

/// A view that owns its sizes and strides. `data` is an identity: nothing lies there.
struct RecordedView {
    TensorView view{};
    std::vector<int64_t> dims;  ///< sizes, then strides

    RecordedView() = default;
    explicit RecordedView(const TensorView& of) : view(of) {
        if (of.ndim > 0) {
            dims.assign(of.sizes, of.sizes + of.ndim);
            dims.insert(dims.end(), of.strides, of.strides + of.ndim);
        }
        point();
    }
    RecordedView(const RecordedView& other) : view(other.view), dims(other.dims) { point(); }
    RecordedView(RecordedView&& other) noexcept : view(other.view), dims(std::move(other.dims)) { point(); }
    RecordedView& operator=(RecordedView other) noexcept {
        view = other.view;
        dims = std::move(other.dims);
        point();
        return *this;
    }
    void point() {
        view.sizes = dims.data();
        view.strides = dims.data() + view.ndim;
    }
};

/// What the scanner said of one tensor.
struct TensorAnswer {
    uint32_t place = 0;  ///< which of the segment's inputs and outputs, from 1; 0: another one
    RecordedView tensor;
    std::optional<Range> range;
    std::optional<KindSet> kinds;
    std::optional<Health> health;
};

/// What else a run's coverage was given: see SessionFacts and use_coverage().
struct CoverageAnswer {
    std::optional<int64_t> launches;
    std::map<std::string, int64_t> kernels;
    std::vector<std::string> blind_spots;  ///< that were added
};

struct Answers {
    std::vector<TensorAnswer> tensors;
    std::map<uint64_t, std::string> elements;     ///< their bytes, by address
    std::vector<std::optional<BirthNote>> notes;  ///< of other processes, in the order in which they were looked for
    std::optional<bool> generated;                ///< whether kernels that torch.compile made are loaded
    std::optional<CoverageAnswer> coverage;
    std::optional<std::string> no_device;  ///< why devices cannot be scanned
};

/// A process group, as Communicator has it.
struct RecordedGroup {
    std::string name;
    std::string description;
    int32_t rank = 0;
    int32_t size = 0;
    std::vector<int32_t> ranks;  ///< empty: not known

    auto operator<=>(const RecordedGroup&) const = default;
};

/// An op, or a node with its views.
struct CallFacts {
    uint64_t thread = 0;
    uint64_t sequence = 0;  ///< of the node that an op made, or of a node
    int64_t graph_task = -1;
    bool grad_enabled = false;
    bool infinite_scalar = false;
    bool inner_ops_shown = false;
    bool on_device = false;
    bool asks_autograd_facts = false;
    bool queue_known = false;
    int16_t queue_device = 0;
    const void* queue_stream = nullptr;
    std::vector<double> scalars;
    std::optional<RecordedGroup> group;  ///< of a collective
};

struct Segment {
    uint32_t thread = 0;  ///< in the order in which threads were first seen, from 1
    Head head = Head::None;
    Head leaves_by = Head::None;  ///< a call that the session made at the end of this; None: its own call is over

    StackId stack = 0;
    uint32_t op = 0;  ///< in the order in which ops were first seen
    CallFacts facts;
    std::vector<RecordedView> inputs;
    std::vector<RecordedView> outputs;  ///< of AccumulateGrad: the variable
    std::string text;                   ///< name of a node, scope or range, or a reason; of use() AdapterApi::hook
    const void* storage = nullptr;      ///< of before_write()
    RangeEvent::Kind range{};           ///< of range(), whose name is `text`
    uint64_t range_key = 0;
    bool range_ignored = false;
    int32_t status = 0;  ///< of the process, or whether it failed

    // what the session's own calls returned
    LiveNames names;
    uint32_t autograd_facts = 0;
    bool pinned = false;
    const void* data = nullptr;
    int64_t bytes = 0;
    std::optional<ProcessRank> rank;

    Answers answers;
};

/// The run, as it began.
struct RunFacts {
    RunSummary run;
    std::map<std::string, std::string> options;  ///< those that differ from their defaults
    std::string torch_version;
    std::string torch_root;
    std::string python_version;
    std::vector<std::string> blind_spots;
    std::string allow_list;                     ///< the file's text
    std::optional<std::string> inductor_cache;  ///< TORCHINDUCTOR_CACHE_DIR
    std::string standard_library;
};

/// An operator, as OpInfo has it.
struct RecordedOp {
    std::string name;
    std::string overload;
    OpClass op_class = OpClass::Other;
    bool mutates = false;
    uint32_t id = 0;
    IntegerOp integer_op = IntegerOp::None;
};

struct RecordedStack {
    StackId id = 0;
    bool in_module = false;
    std::vector<SourceFrame> frames;
};

struct RunEnd {
    int32_t status = 0;
    std::string report;  ///< the JSON text
};

}  // namespace numsan
