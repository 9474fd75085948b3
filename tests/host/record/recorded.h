// A session over made-up events that is recorded, and what a replay of the file says.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "host/base/tensor_memory.h"
#include "host/record/recorder.h"
#include "host/record/replay.h"
#include "host/report/report_difference.h"
#include "nlohmann/json.hpp"
#include "tests/host/session/played.h"

namespace numsan {

/// One at a time: a process has one recorder.
struct RecordedRun {
    static inline Session* session = nullptr;
    static inline Recorder* recorder = nullptr;

    CpuScanner scanner;
    FakeStacks stacks;
    std::string path;
    std::string why;
    const CoreApi* core = nullptr;

    explicit RecordedRun(const std::string& options = "", const char* python_version = "",
                         const std::optional<RunSummary>& of_run = {}) {
        static std::atomic<int> number{0};
        path = testing::TempDir() + "numsan_record_" + std::to_string(getpid()) + "_" + std::to_string(++number);
        stacks.stacks[kModel] = {{"/home/me/model.py", "forward", 3, nullptr, false}};
        stacks.stacks[kMakeGrads] = {{"/env/torch/autograd/__init__.py", "_make_grads", 9, nullptr, false},
                                     {"/home/me/train.py", "main", 44, nullptr, false}};
        stacks.stacks[kTrain] = {{"/home/me/train.py", "main", 40, nullptr, false}};
        Options made;
        std::vector<std::string> complaints;
        parse(options + ":report=none:log=none:record=" + path, made, complaints);
        EXPECT_TRUE(complaints.empty());
        SessionFacts facts;
        facts.torch_version = "2.11.0";
        facts.torch_root = "/env/torch";
        facts.python_version = python_version;
        facts.run = of_run ? *of_run : run_facts(made);
        recorder = Recorder::start(made, *facts.run, why);
        if (recorder == nullptr) return;
        recorder->over(facts);
        session = new Session(made, recorder->over(scanner), recorder->over(stacks), facts);
        static const CoreApi kCore{
            kAdapterAbi,
            [](const OpEvent* event) { session->op_end(*event); },
            [](const OpEvent* event) { session->op_failed(*event); },
            [](const NodeEvent* event) { session->node_begin(*event); },
            [] { session->node_end(); },
            [](const char* name) { session->scope_begin(name); },
            [](const char* name) { session->scope_end(name); },
            [](const void* storage) { session->before_write(storage); },
            [] { session->before_wait(); },
            [](const char* reason) { session->skipped(reason); },
            [](const char* reason) { session->fail(reason); },
        };
        core = &recorder->over(kCore);
        static std::vector<std::pair<Recorder*, Session*>>& all = *new std::vector<std::pair<Recorder*, Session*>>;
        all.emplace_back(recorder, session);
        session->use_coverage(recorder->over(no_coverage));
        session->use_rank(recorder->over(ask_rank));
        recorder->begin(*session, facts, made);
    }
    ~RecordedRun() {
        std::remove(path.c_str());
        load_element_by = nullptr;
    }
    RecordedRun(const RecordedRun&) = delete;
    RecordedRun& operator=(const RecordedRun&) = delete;

    static void no_coverage(RunSummary&) {}
    static std::optional<ProcessRank> ask_rank(void (*)()) { return ProcessRank{3, 8}; }

    void op(const OpInfo& info, const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs,
            uint64_t sequence = ~uint64_t(0), uint32_t (*autograd_facts)(const void*, bool) = nullptr) {
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
        event.autograd_facts = autograd_facts;
        core->op_end(&event);
    }

    void loss(const MadeUp& value) {
        MadeUp ones{1};
        const StackId before = stacks.now;
        stacks.now = kMakeGrads;
        op(kOnesLike, {value.view()}, {ones.returned()});
        stacks.now = before;
    }

    void log_of_negative() {
        MadeUp x{-1}, y{kNan};
        op(kLog, {x.view()}, {y.returned()});
        loss(y);
    }

    Replayed replay() const {
        RecordReader reader = RecordReader::of_file(path);
        return Replay(reader).play();
    }

    /// What the replay found, which must be what the run found.
    json same_findings() const {
        const Replayed made = replay();
        EXPECT_TRUE(made.end.has_value()) << made.why_no_end;
        EXPECT_EQ(made.missing, 0) << made.first_missing;
        if (!made.end) return {};
        for (const std::string& line : report_differences(made.end->report, made.report)) ADD_FAILURE() << line;
        return json::parse(made.report)["findings"];
    }

    std::string bytes() const {
        std::ifstream in(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    }
    void write(const std::string& text) const { std::ofstream(path, std::ios::binary) << text; }
};

}  // namespace numsan
