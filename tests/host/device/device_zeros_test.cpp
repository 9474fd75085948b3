// What only counts of zeros tell, on a device whose quick pass does not count: the same as on the host.
#include <gtest/gtest.h>

#include "tests/host/device/on_device.h"

namespace numsan {
namespace {

const OpInfo kPow{"aten::pow", "", OpClass::Other, false, 21};
const OpInfo kSqrt{"aten::sqrt", "", OpClass::Other, false, 22};
const OpInfo kCast{"aten::_to_copy", "", OpClass::Preserving, false, 23};

/// The first step is over: steps that are a power of two are looked at closely.
struct Zeros {
    OnDevice d;
    const bool device;

    explicit Zeros(bool on) : device(on) {
        d.session.scope_begin("Optimizer.step#SGD.step");
        d.session.scope_end("Optimizer.step#SGD.step");
    }
    TensorView place(const TensorView& t) const { return device ? on_device(t) : t; }
    void op(const OpInfo& info, std::vector<TensorView> in, std::vector<TensorView> out, uint64_t sequence) {
        for (TensorView& t : in) t = place(t);
        for (TensorView& t : out) t = place(t);
        if (device)
            d.op(info, in, out, sequence);
        else
            d.played.op(info, in, out, sequence);
    }
    void reaches(const MadeUpTensor& gradient, const MadeUpTensor& parameter) {
        d.reaches(place(gradient.view()), place(parameter.view()));
    }
};

/// x / sqrt(x^2), whose square overflowed; the same with no value so large that it does.
json muted(bool device, bool overflows) {
    Zeros z(device);
    const float large = overflows ? 3e20f : 3e10f;
    MadeUp x{large, 1}, square{overflows ? kInf : large * large, 1}, root{overflows ? kInf : large, 1};
    MadeUp quotient{overflows ? 0 : 1.0f, 1}, product{overflows ? 0 : 1.0f, 1}, loss{1};
    MadeUp weight{{1, 1}, kParameter};
    z.op(kPow, {x.view(), weight.view()}, {square.returned()}, 1);
    z.op(kSqrt, {square.view()}, {root.returned()}, 2);
    z.op(kDiv, {x.view(), root.view()}, {quotient.returned()}, 3);
    z.op(kMul, {quotient.view(), weight.view()}, {product.returned()}, 4);
    return z.d.finish()["findings"];
}

TEST(DeviceZeros, AnOverflowThatWasDividedAwayIsTheHosts) {
    const json host = muted(false, true), device = muted(true, true);
    ASSERT_EQ(host.size(), 1u);
    EXPECT_EQ(host[0]["op"], "aten::pow");
    ASSERT_EQ(device.size(), 1u);
    for (const char* key : {"op", "mechanism", "category", "severity", "phase", "step"})
        EXPECT_EQ(device[0][key], host[0][key]) << key;
    EXPECT_EQ(muted(true, false).size(), 0u);
}

/// A gradient of float32 that is cast to half where most of it, or little, is below what half holds.
json flushed(bool device, bool most) {
    Zeros z(device);
    const double lost = most ? 1e-9 : 1e-4;
    MadeUp gradient(std::vector<float>(8, static_cast<float>(lost)));
    std::vector<double> kept(8, most ? 0 : lost);
    gradient.values[0] = 1e-4f;
    kept[0] = 1e-4;
    MadeUpHalf half(kept);
    MadeUpHalf weight(std::vector<double>(8, 1), kParameter);
    NodeEvent node{};
    node.name = "ToCopyBackward0";
    node.sequence = 3;
    z.d.session.node_begin(node);
    z.op(kCast, {gradient.view()}, {half.returned()}, ~uint64_t(0));
    z.d.session.node_end();
    z.reaches(half, weight);
    z.d.session.scope_begin("Optimizer.step#SGD.step");
    z.d.session.scope_end("Optimizer.step#SGD.step");
    return z.d.finish()["findings"];
}

TEST(DeviceZeros, AFlushedGradientIsTheHosts) {
    const json host = flushed(false, true), device = flushed(true, true);
    ASSERT_EQ(host.size(), 1u);
    EXPECT_EQ(host[0]["mechanism"], "UDF");
    ASSERT_EQ(device.size(), 1u) << "some of it is left, which the quick pass cannot tell from all";
    for (const char* key : {"op", "mechanism", "category", "severity", "phase", "step", "evidence"})
        EXPECT_EQ(device[0].value(key, json()), host[0].value(key, json())) << key;
    EXPECT_EQ(flushed(true, false).size(), 0u);
}

/// What autograd says is asked while the operand lives.
const void* view_of_weight;
uint32_t autograd_facts_of(const void* impl, bool may_wait) {
    EXPECT_FALSE(may_wait);
    return impl == view_of_weight ? uint32_t(kViewOfParameter) : 0u;
}

TEST(DeviceZeros, AViewOfAParameterIsKnownAsOneLater) {
    OnDevice d;
    MadeUp weight{{kNan, 1}, kRequiresGrad}, y{{kNan, 1}, kRequiresGrad}, loss{kNan};
    const auto op = [&](const OpInfo& info, const MadeUp& from, const MadeUp& to) {
        OpEvent event{};
        const TensorView in = on_device(from.view()), out = on_device(to.returned());
        event.op = &info;
        event.inputs = &in;
        event.outputs = &out;
        event.input_count = event.output_count = 1;
        event.thread = 1;
        event.forward_sequence = 3;
        event.grad_enabled = true;
        event.graph_task = -1;
        event.autograd_facts = autograd_facts_of;
        event.on_device = true;
        event.queue = {nullptr, 0, true};
        d.session.op_end(event);
    };
    view_of_weight = weight.view().impl;
    op(kMul, weight, y);
    op(kMul, y, loss);
    view_of_weight = nullptr;  // gone by the time it is judged
    d.loss(loss);
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u);
    EXPECT_EQ(report["findings"][0]["mechanism"], "STATE") << report["findings"][0].dump(1);
}

}  // namespace
}  // namespace numsan
