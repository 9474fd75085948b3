// Made-up backward passes: how long they go on for gradients that nothing reads.
#include "host/perf/backward_passes.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

/// A model of two parameters, of which the second one gets its gradient last. Each op takes 1 us.
class Step {
  public:
    Lineage lineage;
    BackwardPasses passes;
    MadeUp head{{1, 2, 3}, kParameter}, body{{1, 2, 3, 4}, kParameter};
    MadeUp for_head{1, 2, 3}, for_body{1, 2, 3, 4}, data{std::vector<float>(9)}, inner{1, 2, 3, 4, 5};
    int64_t now = 1000, ops = 1, first = 0;
    int taken_back = 0;

    Step() { op({}, {head.returned(), body.returned(), data.returned()}, -1); }

    void op(std::vector<TensorView> in, std::vector<TensorView> out, int64_t graph_task, const char* name = "aten::mul",
            OpClass op_class = OpClass::Other) {
        const MadeUpOp made(name, std::move(in), std::move(out), op_class);
        OpEvent event = made.event();
        event.graph_task = graph_task;
        if (passes.reads(event, graph_task == -1, OpSeq{ops}, OpSeq{first}, lineage) != 0) ++taken_back;
        now += 1000;
        for (int32_t i = 0; i < event.output_count; ++i) {
            if (op_class == OpClass::Allocation)
                lineage.forget(event.outputs[i].storage);
            else if (!is_view(event, event.outputs[i]))
                lineage.add(event, event.outputs[i], Range{}, OpSeq{ops}, 1, 0);
        }
        ++ops;
        if (graph_task != -1) passes.op(event, OpSeq{ops - 1}, now - 1000, now, [] { return StackId{5}; });
    }
    void hand(MadeUp& parameter, const MadeUp& gradient) {
        passes.node();
        passes.leaf(parameter.view(), gradient.view(), OpSeq{first}, lineage);
    }
    /// Takes 1 us for the head's gradient and 2 us for the body's.
    void backward(int64_t graph_task) {
        passes.node();
        op({data.view()}, {for_head.returned()}, graph_task);
        hand(head, for_head);
        passes.node();
        op({data.view()}, {inner.returned()}, graph_task);
        op({inner.view()}, {for_body.returned()}, graph_task);
        hand(body, for_body);
    }
    void update(MadeUp& parameter, MadeUp& gradient) {
        parameter.values[0] += 1;
        op({parameter.view(), gradient.view()}, {parameter.written()}, -1, "aten::add_");
    }
    int64_t lost() {
        int64_t all = 0;
        passes.end_step([&](StackId, int64_t ns) { all += ns; });
        first = ops;
        return all;
    }
    /// Steps alike, of which the last one's is returned: a parameter is known from the second one on.
    template <class Round>
    int64_t third(Round&& round) {
        for (int i = 0; i < 2; ++i) {
            round();
            lost();
        }
        round();
        return lost();
    }
};

TEST(BackwardPasses, WhatFollowsTheLastGradientThatIsReadIsLost) {
    Step step;
    EXPECT_EQ(step.third([&] {
        step.backward(step.ops);
        step.update(step.head, step.for_head);
    }),
              2000);
    EXPECT_EQ(step.taken_back, 0);
    EXPECT_EQ(step.third([&] {
        step.backward(step.ops);
        step.update(step.head, step.for_head);
        step.update(step.body, step.for_body);
    }),
              0);
}

TEST(BackwardPasses, PassForTheLogBeforeTheOneThatCountsIsLost) {
    Step step;
    EXPECT_EQ(step.third([&] {
        step.backward(step.ops);
        step.op({step.for_head.view()}, {}, -1, "aten::norm");
        step.backward(step.ops);
        step.update(step.head, step.for_head);
        step.update(step.body, step.for_body);
    }),
              2000);
}

TEST(BackwardPasses, OfAPassOfWhichNothingIsReadNothingIsSaid) {
    Step step;
    EXPECT_EQ(step.third([&] { step.backward(step.ops); }), 0);
}

TEST(BackwardPasses, ParameterThatChangesUnseenHasAReaderThatIsNotSeen) {
    Step step;
    EXPECT_EQ(step.third([&] {
        step.backward(step.ops);
        step.update(step.head, step.for_head);
        step.body.values[2] += 1;  // by an optimizer that is no op
    }),
              0);
}

TEST(BackwardPasses, UpdateOfWhichNobodyKnowsWhereItComesFromIsNoExplanation) {
    Step step;
    MadeUp from_numpy{1, 2, 3, 4};
    EXPECT_EQ(step.third([&] {
        step.backward(step.ops);
        step.update(step.head, step.for_head);
        step.update(step.body, from_numpy);
    }),
              0);
}

TEST(BackwardPasses, LeafThatTheStepHasMadeIsNoParameter) {
    Step step;
    EXPECT_EQ(step.third([&] {
        step.op({}, {step.body.returned()}, -1, "aten::clone");
        step.backward(step.ops);
        step.update(step.head, step.for_head);
    }),
              0);
}

TEST(BackwardPasses, WhatHasNoStorageOrIsForgottenMayBeAnyGradient) {
    Step step;
    const auto with = [&](bool sparse) {
        return step.third([&] {
            step.backward(step.ops);
            step.update(step.head, step.for_head);
            TensorView read = step.for_body.view();
            if (sparse)
                read.storage = nullptr;
            else
                step.lineage.forget(read.storage);
            step.op({read}, {}, -1);
        });
    };
    EXPECT_EQ(with(true), 0);
    EXPECT_EQ(with(false), 0);
}

TEST(BackwardPasses, GradientWhoseMakerIsNotSeenMayBeReadUnseen) {
    Step step;
    MadeUp made{1, 2, 3, 4};
    EXPECT_EQ(step.third([&] {
        step.op({step.data.view()}, {step.for_head.returned()}, step.first + 1000);
        step.hand(step.head, step.for_head);
        step.op({step.data.view()}, {step.inner.returned()}, step.first + 1000);
        step.hand(step.body, made);
        step.update(step.head, step.for_head);
    }),
              0);
}

TEST(BackwardPasses, WhatAPassHandsOnIsUsed) {
    const auto with = [](const char* name, OpClass op_class, bool writes) {
        Step step;
        MadeUp kept{1, 2, 3, 4};
        const int64_t lost = step.third([&] {
            step.lineage.forget(&kept);
            const int64_t pass = step.ops;
            step.backward(pass);
            std::vector<TensorView> out;
            if (writes) out.push_back(kept.written());
            step.op({step.for_body.view()}, out, pass, name, op_class);
            step.update(step.head, step.for_head);
        });
        return lost == 0;
    };
    EXPECT_TRUE(with("aten::_local_scalar_dense", OpClass::HostRead, false));
    EXPECT_TRUE(with("c10d::send", OpClass::Other, false));
    EXPECT_TRUE(with("aten::copy_", OpClass::Other, true)) << "to memory of numpy's";
    EXPECT_TRUE(with("aten::norm", OpClass::Other, false)) << "by a hook of a leaf";
    EXPECT_FALSE(with("aten::clone", OpClass::Other, false)) << "AccumulateGrad itself";
}

TEST(BackwardPasses, GradientThatIsCopiedToAnotherLayoutIsLostStill) {
    Step step;
    MadeUp clone{1, 2, 3, 4};
    EXPECT_EQ(step.third([&] {
        const int64_t pass = step.ops;
        step.backward(pass);
        step.op({step.for_body.view()}, {clone.returned()}, pass, "aten::new_empty_strided", OpClass::Allocation);
        step.op({clone.view(), step.for_body.view()}, {clone.written()}, pass, "aten::copy_");
        step.update(step.head, step.for_head);
    }),
              2000);
}

TEST(BackwardPasses, GradientThatTheNextPassAddsToIsRead) {
    Step step;
    EXPECT_EQ(step.third([&] {
        step.backward(step.ops);
        MadeUp& sum = step.for_body;
        step.op({sum.view(), sum.view()}, {sum.written()}, step.ops + 1, "aten::add_");
        step.update(step.head, step.for_head);
    }),
              0);
}

TEST(BackwardPasses, ZeroReadsNothing) {
    Step step;
    EXPECT_EQ(step.third([&] {
        step.backward(step.ops);
        step.update(step.head, step.for_head);
        step.op({step.for_body.view()}, {step.for_body.written()}, -1, "aten::zero_");
    }),
              2000);
}

TEST(BackwardPasses, WhatLaterStepsReadOrAddToIsTakenBack) {
    for (const bool adds : {false, true}) {
        Step step;
        step.third([&] {
            step.backward(step.ops);
            step.update(step.head, step.for_head);
        });
        EXPECT_EQ(step.taken_back, 0);
        if (adds) {
            const int64_t pass = step.ops;
            step.op({step.data.view()}, {step.for_head.returned()}, pass);
            step.op({step.for_body.view(), step.data.view()}, {step.for_body.written()}, pass, "aten::add_");
        } else {
            step.op({step.for_body.view()}, {}, -1, "aten::norm");
        }
        EXPECT_GT(step.taken_back, 0) << adds;
    }
}

TEST(BackwardPasses, ArrayOfNumpysAtAnAddressThatIsRememberedIsNoGradient) {
    Step step;
    const auto healthy = [&] {
        step.backward(step.ops);
        step.update(step.head, step.for_head);
    };
    step.third(healthy);
    TensorView array = step.for_body.view();
    array.storage_data = step.data.values.data();
    step.op({array}, {}, -1);
    EXPECT_EQ(step.taken_back, 0);
}

TEST(BackwardPasses, OfPassesInsideOfPassesNothingIsSaid) {
    Step step;
    EXPECT_EQ(step.third([&] {
        const int64_t outer = step.ops;
        step.op({step.data.view()}, {step.for_head.returned()}, outer);
        step.hand(step.head, step.for_head);
        step.op({step.data.view()}, {step.inner.returned()}, outer + 1000);
        step.op({step.data.view()}, {step.for_body.returned()}, outer);
        step.hand(step.body, step.for_body);
        step.update(step.head, step.for_head);
    }),
              0);
}

}  // namespace
}  // namespace numsan
