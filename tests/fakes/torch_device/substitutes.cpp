// Operators that a device has and the CPU has not, or under another name: convolution, attention, recurrent cells.
#include <ATen/SDPBackend.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/stack.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include "device.h"

namespace fakegpu {
namespace {

using at::Tensor;
using torch::jit::Stack;

using Operands = std::vector<Tensor>;

c10::OperatorHandle named(const char* name) { return c10::Dispatcher::singleton().findSchemaOrThrow(name, ""); }

void convolution(const c10::OperatorHandle& op, Stack* stack) {
    static const c10::OperatorHandle same = named("aten::convolution");
    run_on_shadow(op, stack, [](Stack* s) { same.callBoxed(s); });
}

void convolution_backward(const c10::OperatorHandle& op, Stack* stack) {
    static const c10::OperatorHandle same = named("aten::convolution_backward");
    run_on_shadow(op, stack, [](Stack* s) {
        const size_t bottom = s->size() - 10;
        const Tensor gradient = s->at(bottom).toTensor();
        s->insert(s->begin() + static_cast<ptrdiff_t>(bottom + 3), c10::IValue(std::vector<int64_t>{gradient.size(1)}));
        same.callBoxed(s);
    });
}

int64_t sdp_choice(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask,
                   double dropout, bool causal, std::optional<double> scale, bool grouped) {
    const Quiet quiet;
    const auto cpu_mask = mask ? std::optional(twin(*mask)) : std::nullopt;
    const auto chosen =
        at::_fused_sdp_choice(twin(query), twin(key), twin(value), cpu_mask, dropout, causal, scale, grouped);
    return static_cast<int64_t>(chosen == static_cast<int64_t>(at::SDPBackend::flash_attention)
                                    ? at::SDPBackend::overrideable
                                    : at::SDPBackend::math);
}

void attention(const c10::OperatorHandle& op, Stack* stack) {
    run_on_shadow(op, stack, [](Stack* s) {
        const auto a = torch::jit::last(*s, 8).vec();
        torch::jit::drop(*s, 8);
        const Tensor query = a[0].toTensor(), key = a[1].toTensor();
        auto [out, logsumexp] =
            at::_scaled_dot_product_flash_attention_for_cpu(query, key, a[2].toTensor(), a[4].toDouble(), a[5].toBool(),
                                                            a[3].toOptional<Tensor>(), a[7].toOptional<double>());
        const Tensor none = at::empty({0}, at::kLong);
        torch::jit::push(*s, out, logsumexp, none, none, query.size(2), key.size(2), none, none, none);
    });
}

void attention_backward(const c10::OperatorHandle& op, Stack* stack) {
    run_on_shadow(op, stack, [](Stack* s) {
        const auto a = torch::jit::last(*s, 17).vec();
        torch::jit::drop(*s, 17);
        const Tensor mask = a[4].isTensor() ? a[4].toTensor() : Tensor();
        auto [query, key, value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
            a[0].toTensor(), a[1].toTensor(), a[2].toTensor(), a[3].toTensor(), a[6].toTensor(), a[7].toTensor(),
            a[12].toDouble(), a[13].toBool(), mask.defined() ? std::optional(mask) : std::nullopt,
            a[16].toOptional<double>());
        torch::jit::push(*s, query, key, value, Tensor());
    });
}

/// The operands that are there, those that are not as undefined tensors.
Operands operands(Stack* stack, size_t count) {
    Operands all;
    for (const c10::IValue& value : torch::jit::last(*stack, count))
        all.push_back(value.isTensor() ? value.toTensor() : Tensor());
    torch::jit::drop(*stack, count);
    return all;
}

/// Both biases are there or none.
Operands gates(const Operands& a, int64_t count) {
    Tensor input = a[0], hidden = a[1];
    if (a[3].defined()) {
        input = input + a[3];
        hidden = hidden + a[4];
    }
    Operands all = input.chunk(count, 1);
    for (const Tensor& gate : hidden.chunk(count, 1)) all.push_back(gate);
    return all;
}

void lstm_cell(const c10::OperatorHandle& op, Stack* stack) {
    run_on_shadow(op, stack, [](Stack* s) {
        const Operands a = operands(s, 5), g = gates(a, 4);
        const Tensor in = at::sigmoid(g[0] + g[4]), forget = at::sigmoid(g[1] + g[5]), cell = at::tanh(g[2] + g[6]),
                     out = at::sigmoid(g[3] + g[7]), cy = forget * a[2] + in * cell;
        torch::jit::push(*s, out * at::tanh(cy), cy, at::cat({in, forget, cell, out}, 1));
    });
}

void lstm_cell_backward(const c10::OperatorHandle& op, Stack* stack) {
    run_on_shadow(op, stack, [](Stack* s) {
        const bool has_bias = torch::jit::pop(*s).toBool();
        const Operands a = operands(s, 5), w = a[4].chunk(4, 1);
        const Tensor &in = w[0], &forget = w[1], &cell = w[2], &out = w[3];
        if (!a[0].defined() && !a[1].defined()) {
            torch::jit::push(*s, Tensor(), Tensor(), Tensor());
            return;
        }
        const Tensor squashed = at::tanh(a[3]);
        Tensor grad_out = at::zeros_like(a[3]), grad_cell = a[1].defined() ? a[1] : at::zeros_like(a[3]);
        if (a[0].defined()) {
            grad_out = a[0] * squashed;
            grad_cell = grad_cell + a[0] * out * (1 - squashed * squashed);
        }
        const Tensor grad = at::cat({grad_cell * cell * in * (1 - in), grad_cell * a[2] * forget * (1 - forget),
                                     grad_cell * in * (1 - cell * cell), grad_out * out * (1 - out)},
                                    1);
        torch::jit::push(*s, grad, grad_cell * forget, has_bias ? at::sum(grad, 0) : Tensor());
    });
}

void gru_cell(const c10::OperatorHandle& op, Stack* stack) {
    run_on_shadow(op, stack, [](Stack* s) {
        const Operands a = operands(s, 5), g = gates(a, 3);
        const Tensor reset = at::sigmoid(g[0] + g[3]), update = at::sigmoid(g[1] + g[4]),
                     fresh = at::tanh(g[2] + reset * g[5]);
        torch::jit::push(*s, (a[2] - fresh) * update + fresh, at::cat({reset, update, fresh, a[2], g[5]}, 1));
    });
}

void gru_cell_backward(const c10::OperatorHandle& op, Stack* stack) {
    run_on_shadow(op, stack, [](Stack* s) {
        const bool has_bias = torch::jit::pop(*s).toBool();
        const Operands a = operands(s, 2), w = a[1].chunk(5, 1);
        const Tensor &reset = w[0], &update = w[1], &fresh = w[2];
        const Tensor grad_update = a[0] * (w[3] - fresh) * update * (1 - update);
        const Tensor grad_fresh = a[0] * (1 - update) * (1 - fresh * fresh);
        const Tensor grad_reset = grad_fresh * w[4] * reset * (1 - reset);
        const Tensor input = at::cat({grad_reset, grad_update, grad_fresh}, 1);
        const Tensor hidden = at::cat({grad_reset, grad_update, grad_fresh * reset}, 1);
        torch::jit::push(*s, input, hidden, a[0] * update, has_bias ? at::sum(input, 0) : Tensor(),
                         has_bias ? at::sum(hidden, 0) : Tensor());
    });
}

}  // namespace
}  // namespace fakegpu

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &fakegpu::sdp_choice)
}  // namespace at::native

using namespace fakegpu;

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("_fused_sdp_choice", sdp_choice);
    const auto boxed = [&m](const char* name, auto kernel) { m.impl(name, std::move(kernel)); };
    boxed("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution>());
    boxed("convolution_backward_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution_backward>());
    boxed("_scaled_dot_product_fused_attention_overrideable", torch::CppFunction::makeFromBoxedFunction<&attention>());
    boxed("_scaled_dot_product_fused_attention_overrideable_backward",
          torch::CppFunction::makeFromBoxedFunction<&attention_backward>());
    boxed("_thnn_fused_lstm_cell", torch::CppFunction::makeFromBoxedFunction<&lstm_cell>());
    boxed("_thnn_fused_lstm_cell_backward_impl", torch::CppFunction::makeFromBoxedFunction<&lstm_cell_backward>());
    boxed("_thnn_fused_gru_cell", torch::CppFunction::makeFromBoxedFunction<&gru_cell>());
    boxed("_thnn_fused_gru_cell_backward", torch::CppFunction::makeFromBoxedFunction<&gru_cell_backward>());
}
