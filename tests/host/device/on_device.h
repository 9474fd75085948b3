// A session whose tensors are a made-up device's.
#pragma once

#include <deque>
#include <initializer_list>
#include <vector>

#include "tests/host/device/held_scanner.h"
#include "tests/host/session/played.h"

namespace numsan {

inline const OpInfo kCopy{"aten::_to_copy", "", OpClass::Preserving, false, 6};
inline const OpInfo kEmpty{"aten::empty", "", OpClass::Allocation, false, 8};
inline const OpInfo kFill{"aten::full_like", "", OpClass::Constant, false, 9};

inline HeldScanner* next_scanner = nullptr;

/// Made for the whole process, as the session that uses it is.
inline HeldScanner& make_scanner() {
    static std::vector<HeldScanner*>& all = *new std::vector<HeldScanner*>;
    all.push_back(new HeldScanner);
    return *all.back();
}

struct OnDevice {
    Played& played;
    HeldScanner& scanner = make_scanner();
    Session& session = *played.session;

    explicit OnDevice(const char* options = "", const char* python = "3.11.7") : played(Played::make(options, python)) {
        next_scanner = &scanner;
        session.use_devices([](const OpEvent&, std::string&) -> DeviceScanner* { return next_scanner; });
    }

    /// With minus infinity for a number.
    void fill(const OpInfo& info, const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs) {
        op(info, inputs, outputs, ~uint64_t(0), true);
    }
    void op(const OpInfo& info, const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs,
            uint64_t sequence = ~uint64_t(0), bool infinite_scalar = false) {
        OpEvent event{};
        event.op = &info;
        event.inputs = inputs.data();
        event.outputs = outputs.data();
        event.input_count = static_cast<int32_t>(inputs.size());
        event.output_count = static_cast<int32_t>(outputs.size());
        event.thread = 1;
        event.forward_sequence = sequence;
        event.grad_enabled = true;
        event.graph_task = -1;
        event.infinite_scalar = infinite_scalar;
        event.on_device = true;
        event.queue = {nullptr, 0, true};
        session.op_end(event);
    }
    void read(const MadeUp& value) {
        session.before_wait();
        op(kItem, {on_device(value.view())}, {});
    }
    void loss(const MadeUp& value) {
        static std::deque<MadeUp>& kept = *new std::deque<MadeUp>;  // a graph has it for as long as it is replayed
        MadeUp& ones = kept.emplace_back(std::initializer_list<float>{1});
        const StackId before = played.stacks.now;
        played.stacks.now = kMakeGrads;
        op(kOnesLike, {on_device(value.view())}, {on_device(ones.returned())});
        played.stacks.now = before;
    }
    /// A gradient that reaches a leaf: views as place() or on_device() make them.
    void reaches(TensorView gradient, TensorView leaf) {
        NodeEvent node{};
        node.name = "torch::autograd::AccumulateGrad";
        node.sequence = ~uint64_t(0);
        node.inputs = &gradient;
        node.input_count = 1;
        node.variable = &leaf;
        node.queue = {nullptr, 0, gradient.device != Device::Cpu};
        session.node_begin(node);
        session.node_end();
    }
    json finish() {
        session.finish(0);
        const json report = played.read();
        played.remove();
        return report;
    }
};

}  // namespace numsan
