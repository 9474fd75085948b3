#include "interpose/torch/hook/boxed_call.h"

#include <vector>

#include "interpose/torch/describe/communicator_of.h"
#include "interpose/torch/describe/each_tensor.h"
#include "interpose/torch/describe/tensor_view_of.h"
#include "interpose/torch/hold/forward_calls.h"
#include "interpose/torch/hook/op_begin.h"
#include "interpose/torch/hook/thread_buffers.h"

namespace numsan {
namespace {

struct Scratch {
    std::vector<at::Tensor> operands;  ///< the op takes its arguments off the interpreter's stack
    std::vector<at::Tensor> written;
    std::vector<TensorView> views;
    Scratch* next = nullptr;

    Scratch() {
        operands.reserve(256);
        written.reserve(256);
        views.reserve(512);
    }
    bool idle() const noexcept { return operands.empty() && written.empty(); }
};

Scratch& scratch() { return ThreadBuffers<Scratch>::mine(); }

size_t count_tensors(const c10::IValue& value) {
    size_t count = 0;
    for_each_tensor(value, [&](const at::Tensor&) { ++count; });
    return count;
}

}  // namespace

BoxedCall::BoxedCall(const Operator& op)
    : op_(op),
      operands_(scratch().operands.size()),
      written_(scratch().written.size()),
      call_(op, ThreadPlaces::mine()) {}

BoxedCall::~BoxedCall() {
    if (held_ != nullptr) held_->drop();
    Scratch& s = scratch();
    s.operands.resize(operands_);
    s.written.resize(written_);
}

c10::DispatchKeySet BoxedCall::take(const CoreApi& core, c10::ArrayRef<c10::IValue> arguments) {
    Scratch& s = scratch();
    OpBegin begin(core, op_.info);
    c10::DispatchKeySet keys;
    size_t next_written = 0;
    for (size_t i = 0; i < arguments.size(); ++i) {
        const c10::IValue& value = arguments[i];
        const bool written = next_written < op_.written.size() && op_.written[next_written] == i;
        if (written) ++next_written;
        const bool internal = i < 64 && (op_.internal_arguments >> i & 1) != 0;
        if (value.isDouble()) {
            call_.number(value.toDouble());
        } else if (value.isInt()) {
            call_.number(value.toInt());
        } else if (value.isDevice()) {
            begin.device(value.toDevice());
        } else if (value.isTensor() || value.isList()) {
            for_each_tensor(value, [&](const at::Tensor& tensor) {
                keys = keys | tensor.key_set();
                begin.operand(tensor, written);
                const size_t place = s.operands.size() - operands_;
                if (internal && place < 64) internal_ |= uint64_t(1) << place;
                s.operands.push_back(tensor);
                if (written) s.written.push_back(tensor);
            });
        } else if (op_.group_argument >= 0 && i == static_cast<size_t>(op_.group_argument)) {
            call_.use(communicator_of(value));
        }
    }
    begin.done();
    if (core.held_bytes > 0) [[unlikely]]
        held_ = HeldCall::begin(op_, arguments, core.held_bytes);
    if (core.op_begin != nullptr) [[unlikely]]
        core.op_begin();
    return keys;
}

void BoxedCall::show_operands() {
    const Scratch& s = scratch();
    for (size_t i = 0; operands_ + i < s.operands.size(); ++i)
        call_.operand(s.operands[operands_ + i], i, i < 64 && (internal_ >> i & 1) != 0);
}

void BoxedCall::report_failure(const CoreApi& core) noexcept {
    try {
        Scratch& s = scratch();
        s.views.resize(s.operands.size() - operands_);
        call_.use(s.views.data(), nullptr);
        show_operands();
        call_.report_failure(core);
    } catch (const std::exception&) {
        core.fail("an operator could not be described");
    }
}

void BoxedCall::report(const CoreApi& core, c10::ArrayRef<c10::IValue> returns, uint64_t sequence) {
    Scratch& s = scratch();
    const size_t operands = s.operands.size() - operands_;
    const size_t written = s.written.size() - written_;
    size_t count = 0;
    for (const c10::IValue& value : returns) count += count_tensors(value);
    // No op runs from here on, so nothing else uses the buffer of views.
    s.views.resize(operands + count + written);
    call_.use(s.views.data(), s.views.data() + operands);
    show_operands();
    for (size_t i = 0; i < returns.size(); ++i) {
        for_each_tensor(returns[i], [&](const at::Tensor& tensor) { call_.returned(tensor, i); });
    }
    for (size_t i = 0; i < written; ++i) call_.written(s.written[written_ + i], i);
    if (held_ == nullptr) return call_.report(core, sequence);
    held_->returned(returns);
    if (const uint64_t node = call_.node_of(sequence); node != ~uint64_t(0))
        note_forward_call(op_, ThreadPlaces::mine().number(), node, held_->arguments(), returns);
    const CurrentHold current(held_);
    call_.report(core, sequence);
}

}  // namespace numsan
