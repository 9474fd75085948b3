// Made-up loops over slices of a tensor: which of them one op could do at once.
#include "host/perf/loops/sample_loops.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/host/perf/made_loop.h"
#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

/// Ops that take 1 us, with 1 us in between; rounds over elements of a batch that an op has made.
class LoopProgram {
  public:
    Lineage lineage;
    SampleLoops loops;
    MadeUp batch{std::vector<float>(64)}, sums{std::vector<float>(64)}, weight{2}, total{0}, made{1, 2};
    int64_t took = 1000, between = 1000;
    SampleLoops::Seen seen;

    LoopProgram() { op("aten::mul", {}, {batch.returned(), sums.returned(), weight.returned(), total.returned()}); }

    static TensorView element(const MadeUp& of, int i, uint32_t more = 0) {
        static const int64_t one = 1;
        TensorView view = of.view(more);
        view.data = static_cast<const float*>(view.data) + i;
        view.sizes = &one;
        view.numel = 1;
        return view;
    }
    /// Results of different lines are different tensors, those of one are made anew each time.
    const MadeUp& fresh(int line) {
        auto& of_line = results_[line];
        of_line.push_back(std::make_unique<MadeUp>(std::vector<float>(1)));
        return *of_line.back();
    }
    void op(const char* name, std::vector<TensorView> in, std::vector<TensorView> out, StackId line = 1,
            OpClass op_class = OpClass::Other, std::vector<double> scalars = {}) {
        static std::map<std::string, OpInfo> operators;
        const MadeUpOp made_up(name, std::move(in), std::move(out), op_class);
        OpEvent event = made_up.event();
        event.op = &operators.try_emplace(name, made_up.info).first->second;
        event.scalars = scalars.data();
        event.scalar_count = static_cast<int32_t>(scalars.size());
        event.forward_sequence = static_cast<uint64_t>(ops_);
        const OpSeq seq{ops_++};
        note(loops.saw(event, {seq, now_, took, 0}, lineage, [&] { return line; }));
        for (int32_t i = 0; i < event.output_count; ++i) lineage.add(event, event.outputs[i], Range{}, seq, line, 0);
        now_ += took + between;
    }
    /// f(x[i]), a new tensor.
    const MadeUp& reads(int i, StackId line = 1) {
        const MadeUp& result = fresh(1);
        op("aten::mul", {element(batch, i), weight.view()}, {result.returned()}, line);
        return result;
    }
    const MadeUp& exp(const MadeUp& of) {
        const MadeUp& result = fresh(2);
        op("aten::exp", {of.view()}, {result.returned()}, 2);
        return result;
    }
    void writes(const MadeUp& to, int i, const MadeUp& from) {
        op("aten::copy_", {element(to, i), from.view()}, {element(to, i, kWritten)}, 3, OpClass::Overwriting);
    }
    template <class Body>
    SampleLoops::Seen rounds(int count, Body&& body) {
        for (int i = 0; i < count; ++i) body(i);
        note(loops.interrupt());
        return seen;
    }
    template <class Body>
    bool is_loop(Body&& body) {
        return rounds(40, body).what == SampleLoops::Seen::What::Loop;
    }

  private:
    void note(const SampleLoops::Seen& now) {
        if (now.what != SampleLoops::Seen::What::Nothing && seen.what != SampleLoops::Seen::What::None) seen = now;
    }
    std::map<int, std::vector<std::unique_ptr<MadeUp>>> results_;
    int64_t ops_ = 1, now_ = 1000;
};

TEST(SampleLoops, RoundsOnSlicesAreALoop) {
    LoopProgram program;
    const auto loop = program.rounds(20, [&](int i) { program.exp(program.reads(i)); });
    ASSERT_EQ(loop.what, SampleLoops::Seen::What::Loop);
    EXPECT_EQ(loop.stack, 1u);
    EXPECT_STREQ(loop.op->name, "aten::mul");
    EXPECT_EQ(loop.rounds, 20);
    EXPECT_EQ(loop.ns, 20 * 4000);
    EXPECT_EQ(loop.first_node, 4u) << "the second round's first";
    EXPECT_EQ(loop.last_node, 41u);
}

TEST(SampleLoops, OpThatLeadsNeedNotBeARoundsFirst) {
    LoopProgram program;
    MadeUp before{std::vector<float>(64)};
    program.op("aten::exp", {LoopProgram::element(program.batch, 50), program.weight.view()}, {before.returned()}, 9);
    EXPECT_TRUE(program.is_loop([&](int i) {
        const MadeUp& mean = program.exp(program.reads(i));
        const MadeUp& result = program.fresh(4);
        program.op("aten::exp", {LoopProgram::element(program.batch, i), mean.view()}, {result.returned()}, 4);
    }));
}

TEST(SampleLoops, LoopInsideOfALoopIsOne) {
    LoopProgram program;
    EXPECT_TRUE(program.is_loop([&](int i) { program.reads(i / 4 * 6 + i % 4); })) << "slices lie apart in two ways";
    LoopProgram longer;
    EXPECT_TRUE(longer.is_loop([&](int i) {
        longer.reads(i);
        if (i % 2 == 1) longer.exp(longer.made);
    }));
}

TEST(SampleLoops, WhatJoinsResultsIsNoPartOfARound) {
    LoopProgram program;
    const auto joins = [&](int i) {
        const TensorView one = program.reads(i).view();
        if (i % 4 == 3) program.op("aten::cat", {one, one, one}, {program.made.returned()}, 5);
    };
    EXPECT_TRUE(program.is_loop(joins));
    LoopProgram window;
    EXPECT_FALSE(window.is_loop([&](int i) {
        const TensorView one = window.reads(i).view();
        window.op("aten::cat", {one, one, one}, {window.made.returned()}, 5);
        window.exp(window.made);
    })) << "what it joins may be of earlier rounds";
}

TEST(SampleLoops, SumOfRoundsIsOne) {
    LoopProgram program;
    EXPECT_TRUE(program.is_loop([&](int i) {
        program.op("aten::add_", {program.total.view(), program.reads(i).view()}, {program.total.written()}, 2);
    }));
    LoopProgram read;
    EXPECT_FALSE(read.is_loop([&](int i) {
        read.op("aten::add_", {read.total.view(), read.reads(i).view()}, {read.total.written()}, 2);
        read.exp(read.total);
    })) << "what is added up so far is read";
    LoopProgram decays;
    EXPECT_FALSE(decays.is_loop([&](int i) {
        const MadeUp& one = decays.reads(i);
        decays.op("aten::add_", {decays.total.view(), one.view()}, {decays.total.written()}, 2, OpClass::Other, {0.9});
    }));
}

TEST(SampleLoops, RoundThatNeedsTheOneBeforeIsNone) {
    LoopProgram program;
    MadeUp state{1};
    program.op("aten::exp", {program.weight.view()}, {state.returned()}, 9);
    EXPECT_EQ(program
                  .rounds(40,
                          [&](int i) {
                              const MadeUp& read = program.reads(i);
                              const MadeUp& kept = program.exp(state);
                              program.op("aten::add", {read.view(), kept.view()}, {state.returned()}, 6);
                          })
                  .what,
              SampleLoops::Seen::What::Nothing);
}

TEST(SampleLoops, SlicesThatRoundsWriteAreToBeTheirOwn) {
    LoopProgram apart;
    EXPECT_TRUE(apart.is_loop([&](int i) { apart.writes(apart.sums, i, apart.reads(i)); }));
    LoopProgram in_place;
    EXPECT_TRUE(in_place.is_loop([&](int i) { in_place.writes(in_place.batch, i, in_place.reads(i)); }));
    LoopProgram next;
    EXPECT_FALSE(next.is_loop([&](int i) { next.writes(next.batch, i + 1, next.reads(i)); }));
    LoopProgram last;
    EXPECT_FALSE(last.is_loop([&](int i) {
        const MadeUp& result = last.fresh(4);
        last.op("aten::mul", {LoopProgram::element(last.sums, i), last.reads(i + 1).view()}, {result.returned()}, 4);
        last.writes(last.sums, i + 1, result);
    }));
    LoopProgram behind;
    EXPECT_FALSE(behind.is_loop([&](int i) {
        behind.writes(behind.sums, i + 1, behind.reads(i));
        behind.op("aten::exp", {LoopProgram::element(behind.sums, i)}, {behind.fresh(4).returned()}, 4);
    })) << "written in this round, but another slice";
}

TEST(SampleLoops, OtherOpsNumbersAndOperandsAreNone) {
    LoopProgram ops;
    EXPECT_FALSE(ops.is_loop([&](int i) {
        ops.reads(i);
        if (i % 5 < 3) ops.exp(ops.made);
    }));
    LoopProgram numbers;
    EXPECT_FALSE(numbers.is_loop([&](int i) {
        numbers.op("aten::exp", {numbers.reads(i).view()}, {numbers.fresh(2).returned()}, 2, OpClass::Other,
                   {static_cast<double>(i)});
    }));
    LoopProgram uneven;
    EXPECT_FALSE(uneven.is_loop([&](int i) { uneven.reads(i * i % 63); }));
    LoopProgram tables;
    std::vector<std::unique_ptr<MadeUp>> parameters;
    for (int i = 0; i < 40; ++i) parameters.push_back(std::make_unique<MadeUp>(std::vector<float>(2), kParameter));
    EXPECT_FALSE(tables.is_loop([&](int i) {
        tables.op("aten::mul", {tables.reads(i).view(), parameters[static_cast<size_t>(i)]->view()},
                  {tables.fresh(6).returned()}, 6);
    }));
    LoopProgram lines;
    EXPECT_FALSE(lines.is_loop([&](int i) { lines.reads(i, static_cast<StackId>(10 + i)); }))
        << "written out line by line";
}

TEST(SampleLoops, FewRoundsLargeOpsAndTimeWithoutOpsAreNone) {
    LoopProgram few;
    EXPECT_EQ(few.rounds(15, [&](int i) { few.reads(i); }).what, SampleLoops::Seen::What::Nothing);
    LoopProgram enough;
    EXPECT_EQ(enough.rounds(16, [&](int i) { enough.reads(i); }).what, SampleLoops::Seen::What::Loop);
    LoopProgram large;
    large.took = 10'000;
    EXPECT_FALSE(large.is_loop([&](int i) { large.reads(i); }));
    LoopProgram one_large;
    EXPECT_FALSE(one_large.is_loop([&](int i) {
        const MadeUp* last = &one_large.reads(i);
        for (int k = 0; k < 5; ++k) last = &one_large.exp(*last);
        one_large.took = 100'000;
        one_large.exp(*last);
        one_large.took = 1000;
    }));
    LoopProgram python;
    python.between = 60'000;
    EXPECT_FALSE(python.is_loop([&](int i) { python.reads(i); }));
}

TEST(SampleLoops, OpsThatAreNoneForASampleAreNone) {
    for (const char* name : {"mine::simulate", "aten::randn_like", "aten::native_batch_norm"}) {
        LoopProgram program;
        EXPECT_FALSE(program.is_loop([&](int i) {
            program.op(name, {program.reads(i).view()}, {program.fresh(2).returned()}, 2);
        })) << name;
    }
    LoopProgram look;
    EXPECT_FALSE(look.is_loop(
        [&](int i) { look.op("aten::_local_scalar_dense", {look.reads(i).view()}, {}, 2, OpClass::HostRead); }));
}

TEST(SampleLoops, WhatIsWrittenUnseenIsNone) {
    for (const int first : {0, 25}) {
        LoopProgram ahead, state;
        const auto rounds_ahead = ahead.rounds(40, [&](int i) {
            ahead.reads(i);
            if (i >= first) ahead.batch.values[static_cast<size_t>(i + 1)] += 1;
        });
        const auto rounds_of_state = state.rounds(40, [&](int i) {
            state.reads(i);
            if (i >= first) state.weight.values[0] += 1;
        });
        const auto what = first == 0 ? SampleLoops::Seen::What::Nothing : SampleLoops::Seen::What::None;
        EXPECT_EQ(rounds_ahead.what, what) << first << ": what was said of it elsewhere is taken back, too";
        EXPECT_EQ(rounds_of_state.what, what) << first;
    }
}

TEST(SampleLoops, ArrayAtTheAddressOfAResultIsNone) {
    LoopProgram program;
    float number = 1;
    EXPECT_FALSE(program.is_loop([&](int i) {
        TensorView array = program.reads(i).view();
        array.data = array.storage_data = &number;
        program.op("aten::exp", {array}, {program.fresh(2).returned()}, 2);
    }));
}

/// The watch counts a loop with what autograd runs for it.
TEST(SlowWatchLoops, BackwardPassOfALoopIsItsCost) {
    MadeLoop loop;
    MadeUp batch{std::vector<float>(64)}, result{1}, parameter{{1, 2}, kParameter}, gradient{1, 2};
    int64_t step = 0;
    for (; step < 12; ++step) {
        loop.watch.steps_are(step);
        loop.run(MadeUpOp("aten::mul", {parameter.view()}, {batch.returned()}).event(), kMs, 1);
        for (int i = 0; i < 20; ++i) {
            const MadeUpOp op("aten::exp", {LoopProgram::element(batch, i)}, {result.returned()});
            OpEvent event = op.event();
            event.forward_sequence = static_cast<uint64_t>(100 + i);
            MadeLoop::now += 4000;
            loop.run(event, 1000, 2);
        }
        NodeEvent node{};
        node.sequence = 110;
        loop.watch.node_begins(node);
        const MadeUpOp op("aten::mul", {result.view()}, {gradient.returned()});
        OpEvent event = op.event();
        event.graph_task = step;
        loop.run(event, kMs, 3);
        node.sequence = 90;
        loop.watch.node_begins(node);
        loop.run(event, kMs, 3);
    }
    loop.watch.steps_are(step);
    const SlowRun run = loop.watch.run(PlaceFinder("/env/torch"));
    ASSERT_EQ(run.findings.size(), 1u);
    EXPECT_EQ(run.findings[0].cause, SlowCause::SampleLoop);
    EXPECT_EQ(run.findings[0].count, 20);
    EXPECT_NEAR(run.findings[0].seconds, 1.1e-3, 0.05e-3);
}

}  // namespace
}  // namespace numsan
