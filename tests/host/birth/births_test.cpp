// What a bad value goes back to: kinds, intended infinities, values from outside.
#include "host/birth/births.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "host/birth/external_births.h"
#include "tests/host/birth/made_births.h"

namespace numsan {
namespace {

class BirthsTest : public MadeBirths {
  protected:
    /// The tensor is read by an op without anything known of it.
    const Birth& outside(const MadeUpTensor& tensor, Kind kind, OpClass op_class = OpClass::Other) {
        const MadeUpOp op(op_class == OpClass::Constant ? "aten::lift_fresh" : "aten::mul", {tensor.view()},
                          {out.returned()}, op_class);
        const BirthKinds made = external.made(tensor.view(), op.event(), context, scanner.health(tensor.view()));
        return *store.find(made.of(kind));
    }

    Ledger ledger;
    ExternalBirths external{scanner, stacks, ledger, store, facts, phase};
};

TEST_F(BirthsTest, WrittenBy) {
    MadeUp y{1};
    const MadeUpOp op("aten::add_", {x.view(), y.view()}, {x.written()});
    EXPECT_TRUE(written_by(op.event(), x.view()));
    EXPECT_FALSE(written_by(op.event(), y.view()));
    const MadeUpOp pure("aten::add", {x.view(), y.view()}, {x.returned()});
    EXPECT_FALSE(written_by(pure.event(), x.view())) << "a returned value was not written over";
}

TEST_F(BirthsTest, WrittenByAnOpOverLists) {
    std::deque<MadeUp> written, read;
    std::vector<TensorView> inputs, outputs;
    for (int i = 0; i < 100; ++i) outputs.push_back(written.emplace_back(std::vector<float>{1}).written());
    for (const MadeUp& tensor : written) inputs.push_back(tensor.view());
    for (int i = 0; i < 100; ++i) inputs.push_back(read.emplace_back(std::vector<float>{1}).view());
    const MadeUpOp op("aten::_foreach_add_", inputs, outputs);
    const OpEvent event = op.event();
    const WrittenOperands operands(event);
    for (const TensorView& input : inputs) EXPECT_EQ(operands.contain(input), written_by(event, input));
}

TEST_F(BirthsTest, OfASumOverRanksAnInfinityIsThisRanksIfItsShareIsLarge) {
    const MadeUp small{1}, large{3e38f}, infinite{kInf};
    const auto summed = [&](Kind kind, const MadeUp& share, const MadeUp& sum) -> const Birth& {
        return born(kind, MadeUpOp("ncclAllReduce()", {share.view()}, {sum.written()}));
    };
    EXPECT_FALSE(summed(kPosInf, large, infinite).ignored);
    EXPECT_EQ(summed(kPosInf, large, infinite).mechanism, Mechanism::OVF);
    EXPECT_TRUE(summed(kPosInf, small, infinite).ignored) << "another rank put it in";
    EXPECT_TRUE(summed(kNaN, large, out).ignored) << "no sum of finite numbers is NaN";
    const MadeUp nearly{kInf, 3e38f}, far_from{kInf, 1};
    EXPECT_FALSE(summed(kPosInf, nearly, nearly).ignored) << "in place the rest speaks";
    EXPECT_EQ(summed(kPosInf, nearly, nearly).mechanism, Mechanism::OVF);
    EXPECT_TRUE(summed(kPosInf, far_from, far_from).ignored);
}

TEST_F(BirthsTest, ValueFromOutsideIsOfTheData) {
    MadeUp batch{kNan, kInf, 1};
    const Birth& birth = outside(batch, kNaN);
    EXPECT_EQ(birth.mechanism, Mechanism::DATA);
    EXPECT_EQ(birth.phase, Phase::Data);
    EXPECT_EQ(birth.evidence,
              std::vector<std::string>{"no op was seen to make this value: it arrived with the tensor"});
    ASSERT_EQ(birth.inputs.size(), 1u);
    EXPECT_EQ(birth.inputs[0].health.nan, 1);
    EXPECT_FALSE(birth.features.reads_parameter);
    EXPECT_EQ(store.made(), 2) << "one for each kind";
}

TEST_F(BirthsTest, ParameterFromOutsideIsState) {
    const MadeUp bad({kNan}, kParameter);
    const Birth& birth = outside(bad, kNaN);
    EXPECT_EQ(birth.mechanism, Mechanism::STATE);
    EXPECT_EQ(birth.phase, Phase::Load);
    EXPECT_EQ(birth.evidence,
              std::vector<std::string>{"the parameter held this value before any op was seen to write it"});
    EXPECT_TRUE(birth.features.reads_parameter);
}

TEST_F(BirthsTest, ViewOfAParameterIsStateOtherTensorsWithAGraphAreNot) {
    const MadeUp bad({kNan}, kRequiresGrad);
    const MadeUpOp op("aten::mul", {bad.view()}, {out.returned()});
    OpEvent event = op.event();
    const auto read = [&](uint32_t autograd_facts) -> const Birth& {
        context.autograd_facts = &autograd_facts;
        return *store.find(external.made(event.inputs[0], event, context, scanner.health(bad.view())).of(kNaN));
    };
    const Birth& viewed = read(kViewOfParameter);
    EXPECT_EQ(viewed.mechanism, Mechanism::STATE);
    EXPECT_EQ(viewed.phase, Phase::Load);
    EXPECT_TRUE(viewed.features.reads_parameter);
    const Birth& other = read(0);
    EXPECT_EQ(other.mechanism, Mechanism::DATA);
    EXPECT_FALSE(other.features.reads_parameter);
    const Birth& compiled = read(kFromCompiled);
    EXPECT_EQ(compiled.op, "compiled region");
    EXPECT_EQ(compiled.mechanism, Mechanism::INDET);
    EXPECT_EQ(compiled.phase, Phase::Forward);
}

TEST_F(BirthsTest, MemoryThatNothingWrote) {
    MadeUp memory{kNan}, parameter({kNan}, kParameter);
    ledger.mark_unwritten(memory.view(), 9, OpSeq{3});
    ledger.mark_unwritten(parameter.view(), 9, OpSeq{4});
    context.seq = OpSeq{20};
    const Birth& birth = outside(memory, kNaN);
    EXPECT_EQ(birth.mechanism, Mechanism::UNINIT);
    EXPECT_EQ(birth.op, "aten::empty");
    EXPECT_EQ(birth.stack, 9u);
    EXPECT_EQ(birth.seq, OpSeq{3});
    EXPECT_EQ(birth.phase, Phase::Forward);
    EXPECT_EQ(birth.evidence,
              std::vector<std::string>{"nothing wrote this memory between its allocation and the read by aten::mul"});
    EXPECT_EQ(outside(parameter, kNaN).phase, Phase::Load);
    MadeUp transposed{kNan};  // F.linear reads a view of the weight
    ledger.mark_unwritten(transposed.view(), 9, OpSeq{4});
    const uint32_t autograd_facts = kViewOfParameter;
    context.autograd_facts = &autograd_facts;
    const MadeUpOp reads("aten::mm", {transposed.view()}, {out.returned()});
    const OpEvent event = reads.event();
    const BirthKinds made = external.made(event.inputs[0], event, context, scanner.health(event.inputs[0]));
    EXPECT_EQ(store.find(made.of(kNaN))->phase, Phase::Load);
    context.autograd_facts = nullptr;
    MadeUp partly{1, 2, kNan};
    ledger.mark_unwritten(partly.view(), 9, OpSeq{5});
    TensorView written = partly.view();
    written.numel = 2;
    ledger.mark_written(written);
    EXPECT_EQ(outside(partly, kNaN, OpClass::Collective).phase, Phase::Comm);
    EXPECT_EQ(outside(partly, kNaN).evidence.front(),
              "ops wrote only 8 of the 12 bytes of this memory between its allocation and the read by aten::mul");
}

TEST_F(BirthsTest, ARanksOwnPartOfTheBufferIsSentAndTheBufferIsNot) {
    MadeUp buffer{1, kNan};
    TensorView part = buffer.view();
    part.numel = 1;
    part.impl = &part;
    const MadeUpOp gather("c10d::_allgather_base_", {buffer.view(), part}, {buffer.written()}, OpClass::Collective);
    const OpEvent event = gather.event();
    EXPECT_FALSE(sends(event, event.inputs[0]));
    EXPECT_TRUE(sends(event, event.inputs[1]));
    EXPECT_TRUE(written_by(event, event.inputs[0]));
    EXPECT_FALSE(written_by(event, event.inputs[1])) << "it holds afterwards what it held before";
    const MadeUpOp copy("aten::copy_", {buffer.view(), part}, {buffer.written()});
    EXPECT_TRUE(written_by(copy.event(), copy.event().inputs[1])) << "of other ops one memory is one operand";
}

TEST_F(BirthsTest, InfinityThatTheProgramWroteDown) {
    MadeUp scalar{kInf}, mask{0, -kInf}, table{1, kInf}, both{kInf, -kInf}, nan{kNan};
    EXPECT_TRUE(outside(scalar, kPosInf, OpClass::Constant).intended);
    EXPECT_TRUE(outside(mask, kNegInf, OpClass::Constant).intended);
    const Birth& data = outside(table, kPosInf, OpClass::Constant);
    EXPECT_FALSE(data.intended) << "a +inf among a table's values came with it";
    EXPECT_EQ(data.mechanism, Mechanism::DATA);
    EXPECT_FALSE(outside(both, kNegInf, OpClass::Constant).intended);
    EXPECT_FALSE(outside(nan, kNaN, OpClass::Constant).intended);
    EXPECT_FALSE(outside(mask, kNegInf).intended) << "an op that is not there to write constants";
}

TEST_F(BirthsTest, InfinityOfAConstantOp) {
    MadeUp filled{-kInf}, like{kInf}, nan{kNan};
    MadeUpOp fill("aten::masked_fill", {x.view(), weight.view()}, {filled.returned()}, OpClass::Constant);
    fill.infinite_scalar = true;
    EXPECT_TRUE(born(kNegInf, fill).intended);
    EXPECT_TRUE(born(kPosInf, MadeUpOp("aten::full", {}, {like.returned()}, OpClass::Constant)).intended);
    EXPECT_FALSE(born(kNaN, MadeUpOp("aten::full", {}, {nan.returned()}, OpClass::Constant)).intended);
    EXPECT_EQ(store.made(), 1) << "intended ones are not counted";
}

TEST_F(BirthsTest, GoesBackToWhatWasRead) {
    const BirthId first = born(kNaN, {"aten::log", {x.view()}, {out.returned()}}).id;
    BirthKinds before;
    before.of(kNaN) = first;
    const MadeUpOp op("aten::mul", {out.view()}, {out.returned()});
    EXPECT_EQ(births.origin(kNaN, op.event(), context, before, {}, {}).id, first);
    EXPECT_EQ(births.origin(kNaN, op.event(), context, {}, before, {}).id, first) << "what it wrote over";
    EXPECT_EQ(births.origin(kPosInf, op.event(), context, before, {}, {}).id, first) << "an infinity out of a NaN";
    EXPECT_EQ(store.made(), 1);
}

TEST_F(BirthsTest, LoadedStateIsBornWhereItWasLoaded) {
    MadeUp checkpoint{kNan};
    BirthKinds before;
    before.of(kNaN) = outside(checkpoint, kNaN).id;
    const MadeUpOp copy("aten::copy_", {weight.view(), checkpoint.view()}, {weight.written()}, OpClass::Overwriting);
    context.stack = kLoadStack;
    const BirthId id = births.origin(kNaN, copy.event(), context, before, {}, {}).id;
    EXPECT_NE(id, before.of(kNaN));
    const Birth& birth = *store.find(id);
    EXPECT_EQ(birth.mechanism, Mechanism::STATE);
    EXPECT_EQ(birth.phase, Phase::Load);
    EXPECT_EQ(birth.op, "aten::copy_");
    EXPECT_EQ(birth.stack, kLoadStack);
    EXPECT_EQ(birth.evidence, std::vector<std::string>{"it came with the state that was loaded here"});
    context.stack = 1;
    EXPECT_EQ(births.origin(kNaN, copy.event(), context, before, {}, {}).id, before.of(kNaN))
        << "a copy elsewhere is a copy";
}

TEST_F(BirthsTest, WhatIsMadeOfDataAndReadAsAParameterIsItsInitialValue) {
    MadeUp zero{0};
    const BirthId made = born(kPosInf, {"aten::div", {x.view(), zero.view()}, {out.returned()}}).id;
    EXPECT_EQ(store.find(made)->phase, Phase::Data);
    births.becomes_initial_value(made);
    EXPECT_EQ(store.find(made)->phase, Phase::Load);
    EXPECT_EQ(store.find(made)->features.phase, Phase::Load);
    EXPECT_TRUE(store.find(made)->features.reads_parameter);
    const BirthId trained = born(kPosInf, {"aten::div", {weight.view(), zero.view()}, {out.returned()}}).id;
    births.becomes_initial_value(trained);
    EXPECT_EQ(store.find(trained)->phase, Phase::Forward) << "training made it";
    births.becomes_initial_value(0);
}

TEST_F(BirthsTest, LossThatWasBadAlreadyIsBehindItsBackward) {
    const BirthId loss = born(kNaN, {"aten::log", {x.view()}, {out.returned()}}).id;
    store.bad_loss = loss;
    const MadeUpOp div("aten::div", {x.view(), weight.view()}, {out.returned()});
    EXPECT_NE(born(kNaN, div).id, loss) << "a forward op has nothing to do with it";
    context.node = "DivBackward0";
    EXPECT_EQ(born(kNaN, div).id, loss);
    store.bad_loss = 0;
    EXPECT_NE(born(kNaN, div).id, loss);
}

TEST_F(BirthsTest, ForwardValueThatWasHiddenComesBack) {
    const BirthId forward = born(kNaN, {"aten::log", {x.view()}, {out.returned()}}).id;
    EXPECT_FALSE(store.find(forward)->features.hidden);
    const OpInfo log{"aten::log", "", OpClass::Other, false, 0};
    context.node = "LogBackward0";
    EXPECT_EQ(born(kNaN, {"aten::div", {x.view()}, {out.returned()}}, {&log, 4, forward, OpSeq{}}).id, forward);
    EXPECT_TRUE(store.find(forward)->features.hidden);
}

TEST_F(BirthsTest, BackwardBirthKnowsItsForwardOp) {
    const OpInfo sqrt{"aten::sqrt", "", OpClass::Other, false, 0};
    MadeUp zero{0};
    context.node = "SqrtBackward0";
    context.seq = OpSeq{30};
    const Birth& birth =
        born(kPosInf, {"aten::div", {weight.view(), zero.view()}, {out.returned()}}, {&sqrt, 4, 0, OpSeq{12}});
    EXPECT_TRUE(birth.has_forward);
    EXPECT_EQ(birth.forward_op, "aten::sqrt");
    EXPECT_EQ(birth.features.forward_op, "sqrt");
    EXPECT_EQ(birth.forward_stack, 4u);
    EXPECT_EQ(birth.forward_seq, OpSeq{12});
    EXPECT_EQ(birth.node, "SqrtBackward0");
    EXPECT_EQ(birth.features.mechanism, Mechanism::SING);
    EXPECT_EQ(birth.features.phase, Phase::Backward);
}

TEST_F(BirthsTest, MaskThatMeetsItselfIsIndeterminate) {
    MadeUp mask{-kInf, 0};
    BirthKinds before;
    before.of(kNegInf) = outside(mask, kNegInf, OpClass::Constant).id;
    const MadeUpOp softmax("aten::_softmax", {mask.view()}, {out.returned()});
    const Birth& birth = *store.find(births.origin(kNaN, softmax.event(), context, before, {}, {}).id);
    EXPECT_EQ(birth.mechanism, Mechanism::INDET);
    EXPECT_EQ(birth.evidence,
              std::vector<std::string>{"an operand held infinities that the program wrote there on purpose"});
    EXPECT_EQ(births.origin(kPosInf, softmax.event(), context, before, {}, {}).id, before.of(kNegInf))
        << "negated, scaled";
}

TEST_F(BirthsTest, ValueWrittenAsItIs) {
    const Birth& birth = born(kNaN, {"aten::full", {}, {out.returned()}, OpClass::Constant});
    EXPECT_EQ(birth.mechanism, Mechanism::DATA);
    EXPECT_EQ(birth.phase, Phase::Data);
    EXPECT_EQ(birth.evidence, std::vector<std::string>{"the value was written as it is, not computed"});
}

TEST_F(BirthsTest, ZeroThatWasTooSmallIsToldAsUnderflow) {
    MadeUpHalf variance{0}, denominator{0};
    const MadeUpOp add("aten::add", {variance.view()}, {denominator.returned()});
    lineage.add(add.event(), variance.returned(), scanner.range(variance.view()), OpSeq{}, 1, 0);
    lineage.add(add.event(), denominator.returned(), scanner.range(denominator.view()), OpSeq{1}, 1, 0);
    context.seq = OpSeq{2};
    const Birth& birth = born(kPosInf, {"aten::rsqrt", {denominator.view()}, {out.returned()}});
    EXPECT_EQ(birth.mechanism, Mechanism::UDF);
    EXPECT_EQ(birth.features.mechanism, Mechanism::UDF);
    EXPECT_EQ(birth.evidence.back(), "the number that was added to keep it from zero is zero in float16");
}

TEST_F(BirthsTest, OpOverListsIsToldByTheMemberAtFault) {
    MadeUp first({1}, kParameter), second({kNan}, kParameter), fine{4}, zero{0.0f}, top{1}, nothing{0.0f};
    const MadeUpOp op("aten::_foreach_addcdiv_",
                      {first.view(), second.view(), top.view(), nothing.view(), fine.view(), zero.view()},
                      {first.written(), second.written()});
    const Birth& birth = born(kNaN, op);
    EXPECT_EQ(birth.mechanism, Mechanism::DIV0);
    EXPECT_EQ(birth.evidence, std::vector<std::string>{"the divisor has 1 zero"});
    ASSERT_EQ(birth.inputs.size(), 3u);
    EXPECT_EQ(birth.inputs[2].health.zero, 1);
    ASSERT_EQ(birth.outputs.size(), 1u);
    EXPECT_EQ(birth.outputs[0].health.nan, 1);
}

TEST_F(BirthsTest, CheckpointedRegionThatIsComputedAnewIsTheForwardPass) {
    const MadeUpOp op("aten::sqrt", {x.view()}, {out.returned()});
    context.in_module = true;
    const BirthId first = born(kNaN, op).id;
    context.node = "WhereBackward0";
    EXPECT_EQ(births.origin(kNaN, op.event(), context, {}, {}, {}).id, first);
    EXPECT_TRUE(store.find(first)->features.hidden);
    EXPECT_EQ(store.made(), 1);
    MadeUp other{-2};
    EXPECT_NE(born(kNaN, {"aten::sqrt", {other.view()}, {out.returned()}}).id, first) << "of another value";
    MadeUpOp derivative("aten::sqrt", {x.view()}, {out.returned()});
    derivative.grad_enabled = false;
    EXPECT_NE(born(kNaN, derivative).id, first) << "a node's own arithmetic records nothing";
}

TEST_F(BirthsTest, WhatTheOptimizerIsTheFirstToReadIsState) {
    MadeUp moment{kNan}, batch{kNan};
    const auto arrive = [&](const MadeUp& tensor) {
        return births.origin(kNaN, MadeUpOp("aten::set_", {}, {tensor.returned()}).event(), context, {}, {}, {}).id;
    };
    const BirthId kept = arrive(moment), read = arrive(batch);
    const MadeUpOp layer("aten::mul", {batch.view()}, {out.returned()});
    births.used(read, layer.event(), context);
    context.in_optimizer = true;
    const MadeUpOp update("aten::lerp_", {moment.view()}, {moment.written()});
    for (const BirthId id : {kept, read}) births.used(id, update.event(), context);
    EXPECT_EQ(store.find(kept)->mechanism, Mechanism::STATE);
    EXPECT_EQ(store.find(kept)->phase, Phase::Load);
    EXPECT_EQ(store.find(kept)->features.phase, Phase::Load);
    EXPECT_EQ(store.find(read)->mechanism, Mechanism::DATA);
    EXPECT_EQ(outside(moment, kNaN).mechanism, Mechanism::STATE) << "nobody saw it arrive";
}

TEST_F(BirthsTest, WhatAClosureReadsIsNoStateOfTheOptimizer) {
    MadeUp batch{kNan}, other{kNan};
    const MadeUpOp set("aten::set_", {}, {batch.returned()});
    const BirthId id = births.origin(kNaN, set.event(), context, {}, {}, {}).id;
    context.in_optimizer = true;
    const MadeUpOp layer("aten::mm", {batch.view(), weight.view()}, {out.returned()});
    births.used(id, layer.event(), context);
    EXPECT_EQ(store.find(id)->mechanism, Mechanism::DATA);
    const MadeUpOp second("aten::mm", {other.view(), weight.view()}, {out.returned()});
    const BirthKinds made = external.made(second.inputs[0], second.event(), context, scanner.health(other.view()));
    EXPECT_EQ(store.find(made.of(kNaN))->mechanism, Mechanism::DATA);
}

TEST_F(BirthsTest, NumberThatIsNotFinite) {
    context.in_optimizer = true;
    MadeUpOp update("aten::add_", {x.view()}, {out.written()}, OpClass::Other, {std::nan("")});
    update.grad_enabled = false;
    const Birth& rate = born(kNaN, update);
    EXPECT_EQ(rate.mechanism, Mechanism::DATA);
    EXPECT_EQ(rate.op, "aten::add_");
    EXPECT_EQ(rate.phase, Phase::Optimizer);
    EXPECT_TRUE(rate.features.bad_number);
    EXPECT_EQ(rate.evidence, std::vector<std::string>{"a number that `aten::add_` was given is nan"});
    MadeUp batch{kNan};
    const MadeUpOp pad("aten::constant_pad_nd", {batch.view()}, {out.returned()}, OpClass::Other, {kInf});
    context.in_optimizer = false;
    const BirthKinds read = external.made(pad.inputs[0], pad.event(), context, scanner.health(batch.view()));
    EXPECT_FALSE(store.find(read.of(kNaN))->features.bad_number) << "the batch was bad, the number is meant";
    context.in_optimizer = true;
    double number = std::nan("");
    TensorView wrapped = x.view(kNumber);
    wrapped.data = &number;
    wrapped.dtype = DType::Float64;
    MadeUpOp decay("aten::mul_", {x.view(), wrapped}, {out.written()});
    decay.grad_enabled = false;
    const BirthKinds made = external.made(wrapped, decay.event(), context, scanner.health(wrapped));
    const Birth& factor = *store.find(made.of(kNaN));
    EXPECT_EQ(factor.mechanism, Mechanism::DATA) << "no state that was loaded";
    EXPECT_EQ(factor.op, "aten::mul_");
    EXPECT_EQ(factor.phase, Phase::Optimizer);
    EXPECT_TRUE(factor.features.bad_number);
}

TEST_F(BirthsTest, WhatIsJoinedWithAPredictionAndGoesIntoALayerIsData) {
    MadeUp features({1}, kRequiresGrad), joined{1}, other{1};
    const BirthId id = born(kNaN, MadeUpOp("aten::div", {x.view(), x.view()}, {out.returned()})).id;
    context.touched = true;
    const MadeUpOp join("aten::cat", {out.view(), features.view()}, {joined.returned()});
    const MadeUpOp layer("aten::mm", {joined.view(), weight.view()}, {other.returned()});
    births.used(id, join.event(), context);
    EXPECT_EQ(store.find(id)->met, FirstMet::Prediction) << "nothing else is known yet";
    context.node = "MmBackward0";
    births.used(id, layer.event(), context);
    EXPECT_EQ(store.find(id)->met, FirstMet::Prediction) << "a backward pass goes through weights, too";
    context.node = nullptr;
    births.used(id, MadeUpOp("aten::mul", {joined.view(), weight.view()}, {other.returned()}).event(), context);
    EXPECT_EQ(store.find(id)->met, FirstMet::Prediction) << "a penalty reads parameters";
    births.used(id, layer.event(), context);
    EXPECT_EQ(store.find(id)->met, FirstMet::Parameter);
    EXPECT_EQ(store.find(id)->phase, Phase::Data);
}

TEST_F(BirthsTest, WhatArrivesInARunThatDivergesSaysSo) {
    for (const double loss : {1.0, 1e3, 1e6, 1e9}) losses.add(loss);
    MadeUp batch{std::nanf("")};
    const MadeUpOp op("aten::add", {batch.view()}, {out.returned()});
    const BirthKinds read = external.made(batch.view(), op.event(), context, scanner.health(batch.view()));
    EXPECT_DOUBLE_EQ(store.find(read.of(kNaN))->features.loss_growth, 1e9);
    EXPECT_DOUBLE_EQ(born(kNaN, MadeUpOp("aten::div", {x.view(), x.view()}, {out.returned()})).features.loss_growth,
                     1e9);
}

TEST_F(BirthsTest, WhatADataSetMakesIsData) {
    MadeUp prediction({1}, kRequiresGrad), other{1};
    context.in_data_loader = true;
    const BirthId id = born(kNaN, MadeUpOp("aten::div", {x.view(), x.view()}, {out.returned()})).id;
    context.in_data_loader = false;
    context.touched = true;
    births.used(id, MadeUpOp("aten::mul", {out.view(), prediction.view()}, {other.returned()}).event(), context);
    EXPECT_EQ(store.find(id)->phase, Phase::Data);
}

TEST_F(BirthsTest, FlushedValuesHaveNoKind) {
    context.node = "MulBackward0";
    const MadeUpOp op("aten::mul", {x.view()}, {out.returned()});
    const Birth& birth = births.flushed(op.event(), 0, context, {}, Mechanism::UDF, "measured");
    EXPECT_EQ(birth.kind, 0);
    EXPECT_EQ(birth.mechanism, Mechanism::UDF);
    EXPECT_EQ(birth.evidence, std::vector<std::string>{"measured"});
    EXPECT_EQ(birth.phase, Phase::Backward);
}

}  // namespace
}  // namespace numsan
