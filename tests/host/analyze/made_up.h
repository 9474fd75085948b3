// Made-up tensors and op streams for tests of the analysis: real small float buffers, no torch.
#pragma once

#include <cstring>
#include <deque>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "host/analyze/verdict.h"
#include "host/scan/cpu_scanner.h"

namespace numsan {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();

/// A float32 vector with an identity: the object's own address stands for storage and tensor.
struct MadeUp {
    std::vector<float> values;
    int64_t size;
    int64_t stride = 1;
    uint32_t flags;

    MadeUp(std::initializer_list<float> v, uint32_t f = 0) : values(v), size(static_cast<int64_t>(v.size())), flags(f) {}
    MadeUp(const MadeUp&) = delete;
    MadeUp& operator=(const MadeUp&) = delete;

    TensorView view(uint32_t more = 0) const {
        TensorView made{};
        made.data = values.data();
        made.storage = this;
        made.storage_data = values.data();
        made.impl = this;
        made.storage_bytes = static_cast<int64_t>(values.size() * sizeof(float));
        made.numel = size;
        made.sizes = &size;
        made.strides = &stride;
        made.ndim = 1;
        made.dtype = DType::Float32;
        made.device = Device::Cpu;
        made.flags = flags | more | kScannable;
        return made;
    }
    TensorView returned() const { return view(kReturned); }
    TensorView written() const { return view(kWritten); }
};

inline constexpr uint32_t kParameter = kRequiresGrad | kLeaf;
inline constexpr StackId kLossStack = 77;    ///< what made-up streams call "torch makes the first gradient"
inline constexpr StackId kScalerStack = 78;  ///< what they call "the innermost frame is a loss scaler's"
inline constexpr StackId kLoadStack = 79;      ///< inside a load_state_dict()
inline constexpr StackId kFunctionStack = 80;  ///< inside an autograd.Function's forward

struct MadeUpStacks : StackFacts {
    bool is_loss(StackId s) const override { return s == kLossStack; }
    bool is_scaler(StackId s) const override { return s == kScalerStack; }
    bool is_loading(StackId s) const override { return s == kLoadStack; }
    bool in_function(StackId s) const override { return s == kFunctionStack; }
};

/// Plays ops into a verdict as a session does. `context`, `forward` and the public flags hold for the ops that follow.
class Stream {
  public:
    OpContext context;
    ForwardRecord forward;
    bool infinite_scalar = false;
    bool grad_enabled = true;
    std::vector<double> scalars;
    Outcome outcome;
    CpuScanner scanner;
    Lineage lineage;
    ParameterHistory parameters;
    MadeUpStacks stacks;
    Verdict verdict{scanner, stacks, lineage, parameters};

    Stream() {
        context.stack = 1;
        context.in_module = true;
    }

    /// Returns the birth of this op, 0 for none.
    BirthId op(const char* name, const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs,
               OpClass op_class = OpClass::Other) {
        ops_.push_back({name, "", op_class, false, static_cast<uint32_t>(ops_.size())});
        OpEvent event{};
        event.op = &ops_.back();
        event.inputs = inputs.data();
        event.outputs = outputs.data();
        event.input_count = static_cast<int32_t>(inputs.size());
        event.output_count = static_cast<int32_t>(outputs.size());
        event.forward_sequence = ~uint64_t(0);
        event.grad_enabled = grad_enabled;
        event.infinite_scalar = infinite_scalar;
        event.graph_task = -1;
        event.scalars = scalars.data();
        event.scalar_count = static_cast<int32_t>(scalars.size());
        uint64_t bad = 0;
        for (size_t i = 0; i < outputs.size() && op_class != OpClass::Allocation; ++i) {
            if (scanner.range(outputs[i]).suspicious) bad |= uint64_t(1) << i;
        }
        context.seq = next_seq_++;
        BirthId born = 0;
        if (verdict.interesting(event, bad)) verdict.op(event, context, bad, forward, &born, outcome);
        return born;
    }

    /// backward() starts from this loss.
    void loss(const MadeUp& value) {
        MadeUp ones{1};
        const StackId before = context.stack;
        context.stack = kLossStack;
        op("aten::ones_like", {value.view()}, {ones.returned()});
        context.stack = before;
    }

    /// This gradient arrives at this parameter.
    void accumulate(const MadeUp& gradient, const MadeUp& parameter) {
        const TensorView variable = parameter.view();
        const TensorView input = gradient.view();
        NodeEvent event{};
        event.name = "torch::autograd::AccumulateGrad";
        event.sequence = ~uint64_t(0);
        event.inputs = &input;
        event.input_count = 1;
        event.variable = &variable;
        verdict.node(event, context, outcome);
    }

    void step() { verdict.optimizer_begin(outcome); }
    void finish() { verdict.finish(outcome); }

    /// The only escaped birth so far; an empty one, which no test expects, when there is not exactly one.
    EscapedBirth only() const { return outcome.escaped.size() == 1 ? outcome.escaped[0] : EscapedBirth{}; }

  private:
    std::deque<OpInfo> ops_;
    int64_t next_seq_ = 0;
};

}  // namespace numsan
