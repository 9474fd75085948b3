// A session over made-up events and stacks, and what it reports.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "host/session/session.h"
#include "nlohmann/json.hpp"
#include "tests/host/verdict/fake_stacks.h"
#include "tests/host/verdict/made_up.h"

namespace numsan {

using nlohmann::json;

inline constexpr StackId kModel = 1, kMakeGrads = 2, kTrain = 3;

inline const OpInfo kLog{"aten::log", "", OpClass::Other, false, 0};
inline const OpInfo kMul{"aten::mul", "", OpClass::Other, false, 1};
inline const OpInfo kDiv{"aten::div", "", OpClass::Other, false, 2};
inline const OpInfo kAdd{"aten::add_", "Tensor", OpClass::Other, true, 5};
inline const OpInfo kOnesLike{"aten::ones_like", "", OpClass::Constant, false, 3};
inline const OpInfo kItem{"aten::_local_scalar_dense", "", OpClass::HostRead, false, 4};

/// A session lives as long as the process, and so do its parts and those of the tests.
struct Played {
    CpuScanner scanner;
    FakeStacks stacks;
    std::string report;
    Session* session = nullptr;

    explicit Played(const char* options = "", const char* python_version = "") {
        static std::atomic<int> number{0};
        report = testing::TempDir() + "numsan_session_" + std::to_string(getpid()) + "_" + std::to_string(++number) +
                 ".json";
        stacks.stacks[kModel] = {{"/home/me/model.py", "forward", 3, nullptr, false}};
        stacks.stacks[kMakeGrads] = {{"/env/torch/autograd/__init__.py", "_make_grads", 9, nullptr, false},
                                     {"/home/me/train.py", "main", 44, nullptr, false}};
        stacks.stacks[kTrain] = {{"/home/me/train.py", "main", 40, nullptr, false}};
        Options made;
        std::vector<std::string> complaints;
        parse(options, made, complaints);
        EXPECT_TRUE(complaints.empty());
        if (made.report == Options().report) made.report = report;
        made.log = "none";
        SessionFacts facts;
        facts.torch_version = "2.11.0";
        facts.torch_root = "/env/torch";
        facts.python_version = python_version;
        facts.blind_spots = {"a blind spot"};
        session = new Session(made, scanner, stacks, facts);
    }

    /// Made for the whole process, see above.
    static Played& make(const char* options = "", const char* python_version = "") {
        static std::vector<Played*>& all = *new std::vector<Played*>;
        all.push_back(new Played(options, python_version));
        return *all.back();
    }

    void op(const OpInfo& info, const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs,
            uint64_t sequence = ~uint64_t(0), uint64_t thread = 1) {
        OpEvent event{};
        event.op = &info;
        event.inputs = inputs.data();
        event.outputs = outputs.data();
        event.input_count = static_cast<int32_t>(inputs.size());
        event.output_count = static_cast<int32_t>(outputs.size());
        event.thread = thread;
        event.forward_sequence = sequence;
        event.grad_enabled = true;
        event.graph_task = -1;
        session->op_end(event);
    }

    /// In place, with gradients off.
    void update(const MadeUp& parameter, const MadeUp& gradient) {
        const TensorView inputs[] = {parameter.view(), gradient.view()};
        const TensorView output = parameter.written();
        OpEvent event{};
        event.op = &kAdd;
        event.inputs = inputs;
        event.outputs = &output;
        event.input_count = 2;
        event.output_count = 1;
        event.forward_sequence = ~uint64_t(0);
        event.graph_task = -1;
        session->op_end(event);
    }

    void node(const char* name, uint64_t sequence, const MadeUp* gradient = nullptr, const MadeUp* variable = nullptr,
              uint64_t thread = 1) {
        TensorView input{}, leaf{};
        NodeEvent event{};
        event.name = name;
        event.sequence = sequence;
        event.forward_thread = thread;
        if (gradient != nullptr) {
            input = gradient->view();
            event.inputs = &input;
            event.input_count = 1;
        }
        if (variable != nullptr) {
            leaf = variable->view();
            event.variable = &leaf;
        }
        session->node_begin(event);
    }

    void loss(const MadeUp& value, StackId at = kMakeGrads) {
        MadeUp ones{1};
        const StackId before = stacks.now;
        stacks.now = at;
        op(kOnesLike, {value.view()}, {ones.returned()});
        stacks.now = before;
    }

    void log_of_negative() {
        MadeUp x{-1}, y{kNan};
        op(kLog, {x.view()}, {y.returned()});
        loss(y);
    }

    static json read(const std::string& path) {
        std::ifstream in(path);
        return in ? json::parse(in, nullptr, false) : json();
    }
    json read() const { return read(report); }
    void remove() const { std::remove(report.c_str()); }
};

}  // namespace numsan
