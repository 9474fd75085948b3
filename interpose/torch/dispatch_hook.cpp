#include "interpose/torch/dispatch_hook.h"

#include <ATen/SequenceNumber.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/library.h>

#include <atomic>
#include <cmath>
#include <vector>

#include "interpose/torch/op_registry.h"
#include "interpose/torch/tensor_view_of.h"

namespace numsan {
namespace {

constexpr auto kKey = c10::DispatchKey::Fake;
constexpr int32_t kMaxScalars = 8;

std::atomic<const CoreApi*> g_core{nullptr};

/// Buffers of one thread, used as stacks so that ops may nest. Leaked on purpose: a destructor at thread exit would run among
/// destructors of the host program.
struct Scratch {
    std::vector<at::Tensor> inputs;
    std::vector<TensorView> input_views;
    std::vector<TensorView> output_views;
    std::vector<at::Tensor> written;
};

Scratch& scratch() {
    static thread_local Scratch* mine = nullptr;
    if (mine == nullptr) {
        mine = new Scratch;
        mine->inputs.reserve(256);
        mine->input_views.reserve(256);
        mine->output_views.reserve(256);
        mine->written.reserve(256);
    }
    return *mine;
}

/// Takes the key out of the thread's set while an op runs, so that the ops it is made of are not events.
class HideInnerOps {
  public:
    explicit HideInnerOps(bool hide) : hide_(hide) {
        if (hide_) c10::impl::tls_set_dispatch_key_included(kKey, false);
    }
    ~HideInnerOps() {
        if (hide_) c10::impl::tls_set_dispatch_key_included(kKey, true);
    }
    HideInnerOps(const HideInnerOps&) = delete;
    HideInnerOps& operator=(const HideInnerOps&) = delete;

  private:
    bool hide_;
};

/// Gives back, also when the op throws, what this call put on the thread's buffers.
class Frame {
  public:
    explicit Frame(Scratch& s)
        : inputs(s.inputs.size()), input_views(s.input_views.size()), output_views(s.output_views.size()),
          written(s.written.size()), scratch_(s) {}
    ~Frame() {
        scratch_.inputs.resize(inputs);
        scratch_.input_views.resize(input_views);
        scratch_.output_views.resize(output_views);
        scratch_.written.resize(written);
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

    const size_t inputs, input_views, output_views, written;

  private:
    Scratch& scratch_;
};

/// Lists of lists, which collectives take. Plain lists of numbers are not looked into.
template <class Visit>
void for_each_nested_tensor(const c10::IValue& value, Visit&& visit);

template <class Visit>
void for_each_tensor(const c10::IValue& value, Visit&& visit) {
    if (value.isTensor()) {
        const at::Tensor& tensor = value.toTensor();
        if (tensor.defined()) visit(tensor);
    } else if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector()) {
            if (tensor.defined()) visit(tensor);
        }
    } else if (value.isOptionalTensorList()) {
        for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
            if (tensor.has_value() && tensor->defined()) visit(*tensor);
        }
    } else if (value.isList() && !value.isIntList() && !value.isDoubleList() && !value.isBoolList()) {
        for_each_nested_tensor(value, visit);
    }
}

template <class Visit>
void for_each_nested_tensor(const c10::IValue& value, Visit&& visit) {
    for (const c10::IValue& element : value.toListRef()) {
        if (element.isTensor() || element.isList()) for_each_tensor(element, visit);
    }
}

/// Beyond every float16 value and every bfloat16 one that a computation means: somebody wrote "infinity".
bool means_infinity(const c10::IValue& value) {
    return value.isDouble() && !(std::fabs(value.toDouble()) < 1e37) && !std::isnan(value.toDouble());
}

void add_output(Scratch& s, size_t first, const at::Tensor& tensor, uint32_t flag, int16_t argument) {
    TensorView view;
    if (!view_of(tensor, flag, view)) return;
    if (flag == kWritten && tensor.is_leaf()) view.flags |= kLeaf;
    view.argument = argument;
    for (size_t i = first; i < s.output_views.size(); ++i) {
        if (s.output_views[i].impl == view.impl) {
            s.output_views[i].flags |= view.flags;
            return;
        }
    }
    s.output_views.push_back(view);
}

void fallback(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const c10::DispatchKeySet below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
    const CoreApi* core = g_core.load(std::memory_order_relaxed);
    const Operator* op = core == nullptr ? nullptr : &operator_of(handle);
    if (op == nullptr || op->info.op_class == OpClass::Composite || op->info.op_class == OpClass::View) {
        handle.redispatchBoxed(below, stack);
        return;
    }

    Scratch& s = scratch();
    const Frame frame(s);
    bool infinite_scalar = false;
    double scalars[kMaxScalars];
    int32_t scalar_count = 0;
    const size_t arguments = op->arguments;
    size_t next_written = 0;
    for (size_t i = 0; i < arguments; ++i) {
        const c10::IValue& value = (*stack)[stack->size() - arguments + i];
        const bool written = next_written < op->written.size() && op->written[next_written] == i;
        if (written) ++next_written;
        if (!value.isTensor() && !value.isList()) {
            infinite_scalar = infinite_scalar || means_infinity(value);
            if (scalar_count < kMaxScalars && (value.isDouble() || value.isInt())) {
                scalars[scalar_count++] = value.isDouble() ? value.toDouble() : static_cast<double>(value.toInt());
            }
            continue;
        }
        for_each_tensor(value, [&](const at::Tensor& tensor) {
            s.inputs.push_back(tensor);
            if (written) s.written.push_back(tensor);
        });
    }

    {
        const HideInnerOps hide(op->hides_inner_ops);
        handle.redispatchBoxed(below, stack);
    }

    OpEvent event;
    event.op = &op->info;
    for (size_t i = frame.inputs; i < s.inputs.size(); ++i) {
        TensorView view;
        if (!view_of(s.inputs[i], 0, view)) continue;
        if ((view.flags & kRequiresGrad) != 0 && s.inputs[i].is_leaf()) view.flags |= kLeaf;
        view.argument = static_cast<int16_t>(i - frame.inputs);
        s.input_views.push_back(view);
    }
    const size_t returns = op->returns;
    for (size_t i = 0; i < returns && i < stack->size(); ++i) {
        for_each_tensor((*stack)[stack->size() - returns + i], [&](const at::Tensor& tensor) {
            add_output(s, frame.output_views, tensor, kReturned, static_cast<int16_t>(i));
        });
    }
    for (size_t i = frame.written; i < s.written.size(); ++i) {
        add_output(s, frame.output_views, s.written[i], kWritten, static_cast<int16_t>(returns + i - frame.written));
    }
    event.inputs = s.input_views.data() + frame.input_views;
    event.input_count = static_cast<int32_t>(s.input_views.size() - frame.input_views);
    event.outputs = s.output_views.data() + frame.output_views;
    event.output_count = static_cast<int32_t>(s.output_views.size() - frame.output_views);
    event.thread = at::RecordFunction::currentThreadId();
    event.grad_enabled = c10::GradMode::is_enabled();
    event.forward_sequence = event.grad_enabled ? at::sequence_number::peek() - 1 : ~uint64_t(0);
    event.infinite_scalar = infinite_scalar;
    event.graph_task = torch::autograd::get_current_graph_task_id();
    event.kin = kin_of;
    event.scalar_count = scalar_count;
    event.scalars = scalars;
    core->op_end(&event);
}

}  // namespace

const CoreApi* core_api() { return g_core.load(std::memory_order_relaxed); }
void set_core_api(const CoreApi* core) { g_core.store(core, std::memory_order_release); }

void show_ops_of_this_thread(bool on) { c10::impl::tls_set_dispatch_key_included(kKey, on); }

bool install_dispatch_hook(const char** why) {
    // Registrations live as long as the process.
    static torch::Library* all = nullptr;
    static torch::Library* aten = nullptr;
    if (all != nullptr) return true;
    try {
        all = new torch::Library(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
        all->fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
        aten = new torch::Library(torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__);
#define NUMSAN_FALLTHROUGH(name) aten->impl(name, torch::CppFunction::makeFallthrough());
#include "interpose/torch/fallthrough.def"
#undef NUMSAN_FALLTHROUGH
    } catch (const std::exception&) {
        *why = "another library has taken the dispatch key numsan uses";
        return false;
    }
    return true;
}

}  // namespace numsan
