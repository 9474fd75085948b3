#include "interpose/torch/hook/record_hook.h"

#include <ATen/SequenceNumber.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>

#include "interpose/torch/describe/op_registry.h"
#include "interpose/torch/hook/boxed_call.h"
#include "interpose/torch/hook/hook_state.h"
#include "interpose/torch/hook/listeners.h"
#include "interpose/torch/hook/thread_buffers.h"

namespace numsan {
namespace {

using c10::DispatchKey;

/// Operands that functorch or functionalization unwraps before it calls the operator again.
const c10::DispatchKeySet kUnwrapped({DispatchKey::Functionalize, DispatchKey::FuncTorchBatched,
                                      DispatchKey::FuncTorchGradWrapper, DispatchKey::Batched});

/// `name` is what a record function says of its operator without a copy: the string inside the schema, so overloads
/// differ. A schema that is defined anew may lie where an old one was, so the text is compared as well.
struct KnownName {
    const char* name = nullptr;
    const Operator* op = nullptr;
};

struct Thread {
    static constexpr size_t kKnown = 1024;
    int hidden = 0;      ///< calls of this thread that hide what they call
    int subclasses = 0;  ///< calls of this thread that a subclass answers
    std::array<KnownName, kKnown> known;
    Thread* next = nullptr;

    bool idle() const noexcept { return hidden == 0 && subclasses == 0; }
};

/// Null for what is no operator: the inside of an autograd.Function, a library's own range.
const Operator* known_operator(Thread& thread, const at::RecordFunction& fn) {
    const char* name = fn.name();
    const auto hash = reinterpret_cast<uintptr_t>(name);
    KnownName& slot = thread.known[((hash >> 4) ^ (hash >> 14)) % Thread::kKnown];
    if (slot.name == name && slot.op->name == name && slot.op->arguments == fn.num_inputs() &&
        slot.op->returns == fn.num_outputs()) {
        return slot.op;
    }
    const std::optional<c10::OperatorName> full = fn.operator_name();
    if (!full.has_value()) return nullptr;
    const auto handle = c10::Dispatcher::singleton().findSchema(*full);
    if (!handle.has_value()) return nullptr;
    slot = {name, &numsan::operator_of(*handle)};
    return slot.op;
}

/// A call that is an event, from the start of its record function to the end.
class Call final : public at::ObserverContext {
  public:
    Call(Thread& thread, const Operator& op)
        : boxed(op), op_(op), thread_(thread), quiet_(op.info.op_class == OpClass::Collective) {}
    ~Call() override {
        if (hides_) --thread_.hidden;
        if (answered_) --thread_.subclasses;
    }

    void hide_inner_ops() {
        hides_ = op_.hides_inner_ops;
        if (hides_) ++thread_.hidden;
    }

    /// The class of an operand answers: the ops of its answer are events.
    void show_answer() {
        answered_ = true;
        ++thread_.subclasses;
        boxed.show_inner_ops();
    }

    /// After the op. Nothing is said of an op that threw.
    void report(const CoreApi& core, c10::ArrayRef<c10::IValue> outputs) {
        if (std::uncaught_exceptions() > exceptions_ || outputs.size() < op_.returns) return;
        // A node of this op took the number that was next when the op began, above autograd. Inside functorch autograd
        // came before.
        const bool made_node = at::sequence_number::peek() > sequence_;
        boxed.report(core, outputs.slice(outputs.size() - op_.returns), made_node ? sequence_ : OpCall::kLastNode);
    }

    BoxedCall boxed;

  private:
    const Operator& op_;
    Thread& thread_;
    const QuietScopes quiet_;
    const uint64_t sequence_ = at::sequence_number::peek();
    const int exceptions_ = std::uncaught_exceptions();
    bool hides_ = false;
    bool answered_ = false;
};

/// Whether the operator will be called again, on the tensors that it computes with; or whether this is the inside of
/// torch.tensor(), which hides its steps from our key; or, inside a subclass, whether
/// the dispatch hook sees it.
bool passes_through(const Thread& thread, const Operator& op) {
    const c10::impl::LocalDispatchKeySet local = c10::impl::tls_local_dispatch_key_set();
    if (kHookKey != DispatchKey::Undefined && local.excluded_.has(kHookKey) != (thread.subclasses > 0)) return true;
    return (local.included_ - local.excluded_).has_any(op.calls_anew);
}

std::unique_ptr<at::ObserverContext> call_begins(const at::RecordFunction& fn) {
    const CoreApi* core = core_api();
    if (core == nullptr) return nullptr;
    try {
        Thread& thread = ThreadBuffers<Thread>::mine();
        // A listener of a subclass's call may have been handed to another thread with the state of this one.
        if (thread.hidden > 0 || (dispatch_hook_installed() && thread.subclasses == 0)) return nullptr;
        const Operator* op = known_operator(thread, fn);
        if (op == nullptr || op->info.op_class == OpClass::Composite || op->info.op_class == OpClass::View)
            return nullptr;
        if (passes_through(thread, *op)) return nullptr;
        const c10::ArrayRef<c10::IValue> inputs = fn.inputs();  // an interpreter's whole stack, or the arguments
        if (inputs.size() < op->arguments) return nullptr;
        auto call = std::make_unique<Call>(thread, *op);
        const c10::DispatchKeySet keys = call->boxed.take(*core, inputs.slice(inputs.size() - op->arguments));
        if (keys.has_any(kUnwrapped)) return nullptr;
        if (is_for_subclass(keys))
            call->show_answer();
        else
            call->hide_inner_ops();
        return call;
    } catch (const std::exception&) {
        core->fail("an operator could not be described");
        return nullptr;
    }
}

void call_ends(const at::RecordFunction& fn, at::ObserverContext* context) {
    if (context == nullptr) return;
    const CoreApi* core = core_api();
    if (core == nullptr) return;
    try {
        static_cast<Call*>(context)->report(*core, fn.outputs());
    } catch (const std::exception&) {
        core->fail("an operator could not be described");
    }
}

at::RecordFunctionCallback callback() {
    return at::RecordFunctionCallback(call_begins, call_ends)
        .needsInputs(true)
        .needsOutputs(true)
        .scopes({at::RecordScope::FUNCTION});
}

}  // namespace

void SubclassCalls::begin() {
    try {
        Thread& thread = ThreadBuffers<Thread>::mine();
        listener_.emplace(callback());
        ++thread.subclasses;
    } catch (const std::exception&) {
        // Out of memory: the calls inside go unseen.
    }
}

void SubclassCalls::end() { --ThreadBuffers<Thread>::mine().subclasses; }

void install_record_hook() { listen(callback()); }

}  // namespace numsan
