// Made-up tensors and op streams for tests of the analysis: real small buffers, no torch.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/scan/cpu_scanner.h"
#include "host/verdict/verdict.h"

namespace numsan {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();

/// A vector with an identity: the object's own address stands for storage and tensor.
class MadeUpTensor {
  public:
    int64_t size;
    int64_t stride = 1;
    uint32_t flags;
    DType dtype;

    MadeUpTensor(size_t n, uint32_t f, DType d) : size(static_cast<int64_t>(n)), flags(f), dtype(d) {}
    MadeUpTensor(const MadeUpTensor&) = delete;
    MadeUpTensor& operator=(const MadeUpTensor&) = delete;
    virtual ~MadeUpTensor() = default;

    TensorView view(uint32_t more = 0) const {
        TensorView made{};
        made.data = data();
        made.storage = this;
        made.storage_data = data();
        made.impl = this;
        made.storage_bytes = size * static_cast<int64_t>(info(dtype).element_bytes());
        made.numel = size;
        made.sizes = &size;
        made.strides = &stride;
        made.ndim = 1;
        made.dtype = dtype;
        made.device = Device::Cpu;
        made.flags = flags | more | kScannable;
        return made;
    }
    TensorView returned() const { return view(kReturned); }
    TensorView written() const { return view(kWritten); }

  private:
    virtual const void* data() const = 0;
};

/// Of float32.
class MadeUp final : public MadeUpTensor {
  public:
    std::vector<float> values;
    MadeUp(std::initializer_list<float> v, uint32_t f = 0) : MadeUp(std::vector<float>(v), f) {}
    explicit MadeUp(std::vector<float> v, uint32_t f = 0)
        : MadeUpTensor(v.size(), f, DType::Float32), values(std::move(v)) {}

  private:
    const void* data() const override { return values.data(); }
};

/// Bits of the element of `dtype` nearest to `value`.
inline uint64_t encoded(double value, DType dtype) {
    const DTypeInfo& type = info(dtype);
    const uint64_t sign = std::signbit(value) ? type.sign_mask() : 0;
    const double magnitude = std::fabs(value);
    if (std::isnan(value)) return type.magnitude_mask();
    if (magnitude == 0) return sign;
    if (std::isinf(value)) return sign | type.exponent_mask();
    const int exponent = std::max(std::ilogb(magnitude), 1 - static_cast<int>(type.bias));
    const auto mantissa = static_cast<uint64_t>(std::nearbyint(std::ldexp(magnitude, type.mantissa_bits - exponent)));
    // A mantissa of a normal number has its leading one, which counts as one step of the exponent; so does a carry.
    const auto steps = static_cast<uint64_t>(exponent + static_cast<int>(type.bias) - 1);
    return sign | std::min(mantissa + (steps << type.mantissa_bits), type.exponent_mask());
}

/// Of a 16-bit float; values are rounded as the hardware rounds them.
class MadeUpHalf final : public MadeUpTensor {
  public:
    std::vector<uint16_t> bits;
    MadeUpHalf(std::initializer_list<double> v, uint32_t f = 0, DType d = DType::Float16)
        : MadeUpHalf(std::vector<double>(v), f, d) {}
    explicit MadeUpHalf(const std::vector<double>& v, uint32_t f = 0, DType d = DType::Float16)
        : MadeUpTensor(v.size(), f, d) {
        for (const double value : v) bits.push_back(static_cast<uint16_t>(encoded(value, d)));
    }

  private:
    const void* data() const override { return bits.data(); }
};

inline constexpr uint32_t kParameter = kRequiresGrad | kLeaf;
inline constexpr StackId kLossStack = 77;       ///< what made-up streams call "torch makes the first gradient"
inline constexpr StackId kScalerStack = 78;     ///< what they call "the innermost frame is a loss scaler's"
inline constexpr StackId kLoadStack = 79;       ///< inside a load_state_dict()
inline constexpr StackId kFunctionStack = 80;   ///< inside an autograd.Function's forward
inline constexpr StackId kGeneratedStack = 81;  ///< called by code that torch.compile wrote
inline constexpr StackId kRegionStack = 83;     ///< of the call of a compiled region
inline constexpr StackId kPackageStack = 84;    ///< of the call of a package that AOTInductor made
inline constexpr StackId kReplayStack = 82;     ///< of the graph of a compiled region that is run once more

/// One call of an op, for tests of the parts below the verdict.
struct MadeUpOp {
    OpInfo info;
    std::vector<TensorView> inputs;
    std::vector<TensorView> outputs;
    std::vector<double> scalars;
    bool grad_enabled = true;
    bool infinite_scalar = false;

    MadeUpOp(const char* name, std::vector<TensorView> in, std::vector<TensorView> out,
             OpClass op_class = OpClass::Other, std::vector<double> numbers = {})
        : info{name, "", op_class, false, 0},
          inputs(std::move(in)),
          outputs(std::move(out)),
          scalars(std::move(numbers)) {}

    /// Valid as long as this object.
    OpEvent event() const {
        OpEvent made{};
        made.op = &info;
        made.inputs = inputs.data();
        made.outputs = outputs.data();
        made.input_count = static_cast<int32_t>(inputs.size());
        made.output_count = static_cast<int32_t>(outputs.size());
        made.forward_sequence = ~uint64_t(0);
        made.grad_enabled = grad_enabled;
        made.infinite_scalar = infinite_scalar;
        made.graph_task = -1;
        made.scalar_count = static_cast<int32_t>(scalars.size());
        made.scalars = scalars.data();
        return made;
    }
};

struct MadeUpStacks : StackFacts {
    bool is_loss(StackId s) const override { return s == kLossStack; }
    bool is_scaler(StackId s) const override { return s == kScalerStack; }
    bool is_loading(StackId s) const override { return s == kLoadStack; }
    bool in_function(StackId s) const override { return s == kFunctionStack; }
    bool in_generated(StackId s) const override { return s == kGeneratedStack; }
    bool in_replay(StackId s) const override { return s == kReplayStack; }
    bool in_same_region(StackId a, StackId b) const override { return a == kRegionStack && b == kRegionStack; }
    bool in_package(StackId s) const override { return s == kPackageStack; }
    uint64_t place(StackId s) const override { return s; }
    AfterCheck after_check(StackId, StackId next) const override {
        if (asked) asked();
        return next == kGeneratedStack ? after : AfterCheck::Within;
    }
    std::function<void()> asked;            ///< is called as after_check() is
    AfterCheck after = AfterCheck::WentOn;  ///< of ops on kGeneratedStack; all others belong to the check
};

/// Plays ops into a verdict as a session does. `context`, `forward` and the public flags hold for the ops that follow.
class Stream {
  public:
    OpContext context;
    ForwardRecord forward;
    bool infinite_scalar = false;
    bool grad_enabled = true;
    bool vanishing = false;  ///< the session saw that values may have become too small for their type
    std::vector<double> scalars;
    const Communicator* communicator = nullptr;  ///< of collectives
    Outcome outcome;
    int repeats = 0;  ///< ops that only handed on what is reported
    CpuScanner scanner;
    Lineage lineage;
    ParameterHistory parameters;
    MadeUpStacks stacks;
    CollectiveLog collectives;
    Verdict verdict{scanner, stacks, lineage, parameters};

    Stream() {
        verdict.use(collectives);
        context.stack = 1;
        context.in_module = true;
    }

    /// Returns the birth of this op, 0 for none.
    BirthId op(const char* name, const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs,
               OpClass op_class = OpClass::Other) {
        OpEvent event{};
        event.op = &info_of(name, op_class);
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
        OutputSet bad;
        for (size_t i = 0; i < outputs.size() && op_class != OpClass::Allocation; ++i) {
            if (range_of(outputs[i]).suspicious) bad.add(static_cast<int32_t>(i));
        }
        context.seq = OpSeq{next_seq_++};
        if (op_class == OpClass::Collective) event.communicator = communicator;
        context.collective = collectives.begin(event, context.seq);
        lineage.at_step(context.step, context.seq);
        BirthId born = 0;
        if (vanishing || verdict.interesting(event, bad)) {
            std::vector<Range> ranges;
            for (const TensorView& output : outputs) ranges.push_back(range_of(output));
            if (verdict.repeat(event, context, bad, ranges.data(), event.output_count, &born, outcome))
                ++repeats;
            else
                verdict.op(event, context, bad, forward, &born, outcome);
        }
        for (const TensorView& output : outputs) {
            const int state = context.in_optimizer && is_parameter(output) ? Lineage::kState : 0;
            lineage.add(event, output, range_of(output), context.seq, context.stack,
                        static_cast<uint16_t>((context.touched ? Lineage::kTouched : 0) | state));
        }
        return born;
    }

    /// backward() starts from this loss.
    void loss(const MadeUpTensor& value) {
        MadeUp ones{1};
        const StackId before = context.stack;
        context.stack = kLossStack;
        op("aten::ones_like", {value.view()}, {ones.returned()});
        context.stack = before;
    }

    /// This gradient arrives at this parameter.
    void accumulate(MadeUpTensor& gradient, MadeUpTensor& parameter) {
        gradients_[&parameter] = &gradient;
        const TensorView variable = parameter.view();
        const TensorView input = gradient.view();
        NodeEvent event{};
        event.name = "torch::autograd::AccumulateGrad";
        event.sequence = ~uint64_t(0);
        event.inputs = &input;
        event.input_count = 1;
        event.variable = &variable;
        lineage.mark_gradient(input.storage);
        verdict.node(event, context);
    }

    /// The program assigns another gradient.
    void assign(MadeUpTensor& parameter, MadeUpTensor& gradient) { gradients_[&parameter] = &gradient; }

    /// An optimizer adds their gradients to these leaves, or to all that had some.
    void step(const std::set<MadeUpTensor*>& leaves = {}) {
        verdict.optimizer_begin(outcome);
        const bool grad = std::exchange(grad_enabled, false);
        context.in_optimizer = true;
        for (const auto& [leaf, gradient] : gradients_) {
            auto* parameter = dynamic_cast<MadeUp*>(leaf);
            const auto* added = dynamic_cast<MadeUp*>(gradient);
            if (parameter == nullptr || added == nullptr || (!leaves.empty() && leaves.count(leaf) == 0)) continue;
            for (size_t i = 0; i < parameter->values.size() && i < added->values.size(); ++i)
                parameter->values[i] += added->values[i];
            op("aten::add_", {parameter->view(), added->view()}, {parameter->written()});
        }
        context.in_optimizer = false;
        grad_enabled = grad;
    }
    void finish() { verdict.finish(false, outcome); }

    /// The only escaped birth so far; an empty one, which no test expects, when there is not exactly one.
    EscapedBirth only() const { return outcome.escaped.size() == 1 ? outcome.escaped[0] : EscapedBirth{}; }

  private:
    /// Of integers it is not asked.
    Range range_of(const TensorView& output) const { return scannable(output) ? scanner.range(output) : Range{}; }
    /// The same for each call of an op, as the adapter's is.
    const OpInfo& info_of(const char* name, OpClass op_class) {
        const auto known = std::find_if(ops_.begin(), ops_.end(), [&](const OpInfo& op) {
            return std::strcmp(op.name, name) == 0 && op.op_class == op_class;
        });
        if (known != ops_.end()) return *known;
        return ops_.emplace_back(OpInfo{name, "", op_class, false, static_cast<uint32_t>(ops_.size())});
    }

    std::deque<OpInfo> ops_;
    int64_t next_seq_ = 0;
    std::map<MadeUpTensor*, MadeUpTensor*> gradients_;  ///< by leaf
};

/// A root of zero, whose derivative reaches a parameter.
struct Backward {
    Stream s;
    OpInfo sqrt{"aten::sqrt", "", OpClass::Other, false, 0};
    MadeUp zero{0}, one{1}, gradient{kInf};
    MadeUp parameter = MadeUp({1}, kParameter);

    BirthId run() {
        s.context.node = "SqrtBackward0";
        s.forward.op = &sqrt;
        s.forward.stack = 5;
        const BirthId born = s.op("aten::div", {one.view(), zero.view()}, {gradient.returned()});
        s.accumulate(gradient, parameter);
        s.context.node = nullptr;
        return born;
    }
};

}  // namespace numsan
