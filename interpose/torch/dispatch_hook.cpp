#include "interpose/torch/dispatch_hook.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <atomic>
#include <exception>
#include <vector>

#include "interpose/torch/op_call.h"
#include "interpose/torch/op_registry.h"
#include "interpose/torch/typed_hook.h"

namespace numsan {
namespace {

std::atomic<const CoreApi*> g_core{nullptr};

/// Buffers of one thread, used as stacks so that ops may nest. Leaked on purpose: a destructor at thread exit would run among
/// destructors of the host program.
struct Scratch {
    std::vector<at::Tensor> operands;  ///< the op takes its arguments off the interpreter's stack
    std::vector<at::Tensor> written;
    std::vector<TensorView> views;
};

Scratch& scratch() {
    static thread_local Scratch* mine = nullptr;
    if (mine == nullptr) {
        mine = new Scratch;
        mine->operands.reserve(256);
        mine->written.reserve(256);
        mine->views.reserve(512);
    }
    return *mine;
}

/// Gives back, also when the op throws, what this call put on the thread's buffers.
class Frame {
  public:
    explicit Frame(Scratch& s) : operands(s.operands.size()), written(s.written.size()), scratch_(s) {}
    ~Frame() {
        scratch_.operands.resize(operands);
        scratch_.written.resize(written);
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

    const size_t operands, written;

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

size_t count_tensors(const c10::IValue& value) {
    size_t count = 0;
    for_each_tensor(value, [&](const at::Tensor&) { ++count; });
    return count;
}

/// Before the op runs: keeps its tensors, as it takes them off the stack, and its numbers.
void take_arguments(const Operator& op, const torch::jit::Stack& stack, Scratch& s, OpCall& call) {
    size_t next_written = 0;
    for (size_t i = 0; i < op.arguments; ++i) {
        const c10::IValue& value = stack[stack.size() - op.arguments + i];
        const bool written = next_written < op.written.size() && op.written[next_written] == i;
        if (written) ++next_written;
        if (value.isDouble()) {
            call.number(value.toDouble());
        } else if (value.isInt()) {
            call.number(value.toInt());
        } else if (value.isTensor() || value.isList()) {
            for_each_tensor(value, [&](const at::Tensor& tensor) {
                s.operands.push_back(tensor);
                if (written) s.written.push_back(tensor);
            });
        }
    }
}

/// After it ran: describes all of them and what it returned. No op runs from here on, so nothing else uses the buffer of views.
void report_call(const CoreApi& core, const Operator& op, const torch::jit::Stack& stack, const Frame& frame, Scratch& s,
                 OpCall& call) {
    const size_t operands = s.operands.size() - frame.operands;
    const size_t written = s.written.size() - frame.written;
    const size_t returns = stack.size() >= op.returns ? op.returns : 0;
    const auto returned = [&](size_t i) -> const c10::IValue& { return stack[stack.size() - returns + i]; };
    size_t count = 0;
    for (size_t i = 0; i < returns; ++i) count += count_tensors(returned(i));
    s.views.resize(operands + count + written);
    call.use(s.views.data(), s.views.data() + operands);
    for (size_t i = 0; i < operands; ++i) call.operand(s.operands[frame.operands + i], i);
    for (size_t i = 0; i < returns; ++i) {
        for_each_tensor(returned(i), [&](const at::Tensor& tensor) { call.returned(tensor, i); });
    }
    for (size_t i = 0; i < written; ++i) call.written(s.written[frame.written + i], i);
    call.report(core);
}

void fallback(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    const c10::DispatchKeySet below = behind_hook(keys);
    const CoreApi* core = g_core.load(std::memory_order_relaxed);
    const Operator* op = core == nullptr ? nullptr : &operator_of(handle);
    if (op == nullptr || op->info.op_class == OpClass::Composite || op->info.op_class == OpClass::View) {
        handle.redispatchBoxed(below, stack);
        return;
    }
    Scratch& s = scratch();
    const Frame frame(s);
    OpCall call(*op);
    take_arguments(*op, *stack, s, call);
    {
        const HideInnerOps hide(op->hides_inner_ops);
        handle.redispatchBoxed(below, stack);
    }
    try {
        report_call(*core, *op, *stack, frame, s, call);
    } catch (const std::exception&) {
        core->fail("an operator could not be described");
    }
}

}  // namespace

const CoreApi* core_api() { return g_core.load(std::memory_order_relaxed); }
void set_core_api(const CoreApi* core) { g_core.store(core, std::memory_order_release); }

void show_ops_of_this_thread(bool on) { c10::impl::tls_set_dispatch_key_included(kHookKey, on); }

bool install_dispatch_hook(const char** why) {
    // Registrations live as long as the process.
    static torch::Library* all = nullptr;
    static torch::Library* aten = nullptr;
    if (all != nullptr) return true;
    try {
        all = new torch::Library(torch::Library::IMPL, "_", kHookKey, __FILE__, __LINE__);
        all->fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
        aten = new torch::Library(torch::Library::IMPL, "aten", kHookKey, __FILE__, __LINE__);
#define NUMSAN_FALLTHROUGH(name) aten->impl(name, torch::CppFunction::makeFallthrough());
#include "interpose/torch/fallthrough.def"
#undef NUMSAN_FALLTHROUGH
        register_typed_hooks(*aten);
    } catch (const std::exception&) {
        *why = "another library has taken the dispatch key numsan uses";
        return false;
    }
    return true;
}

}  // namespace numsan
