// The table of operators, found by name.
#include "host/ops/op_traits.h"

#include <gtest/gtest.h>

#include "host/ops/op_table.h"

namespace numsan {
namespace {

TEST(PlainOpName, LeavesOutAllButTheOperator) {
    EXPECT_EQ(plain_op_name("aten::add_.Tensor"), "add");
    EXPECT_EQ(plain_op_name("aten::_foreach_addcdiv_"), "addcdiv");
    EXPECT_EQ(plain_op_name("aten::__and__.Tensor"), "__and__");
    EXPECT_EQ(plain_op_name("mul"), "mul");
    EXPECT_EQ(plain_op_name("my::lib::op"), "op");
    EXPECT_EQ(plain_op_name(""), "");
}

TEST(OpTraits, AreFoundByAnyName) {
    EXPECT_EQ(traits_of("aten::log_").form, Form::Log);
    EXPECT_EQ(traits_of("aten::log10.out").form, Form::Log);
    EXPECT_EQ(traits_of("aten::_foreach_addcdiv_.Scalar").form, Form::AddQuotient);
    EXPECT_EQ(traits_of("aten::no_such_op").form, Form::Unknown);
    EXPECT_EQ(traits_of("log").form, Form::Log);
    EXPECT_EQ(traits_of("prims::log").form, Form::Log);
    EXPECT_EQ(traits_of("mine::log").form, Form::Unknown) << "another operator of that name";
    EXPECT_EQ(traits_of("").form, Form::Unknown);
}

TEST(OpTraits, OperatorOfTheProgramsInANamespaceThatTorchHasToo) {
    for (const char* mine : {"sparse::log", "streams::log", "export::log", "onnx::log", "profiler::log"}) {
        EXPECT_FALSE(is_of_torch(mine)) << mine;
        EXPECT_EQ(traits_of(mine).form, Form::Unknown) << mine;
    }
    EXPECT_TRUE(is_of_torch("sparse::qlinear_relu"));
    EXPECT_TRUE(is_of_torch("streams::fork.default"));
    EXPECT_TRUE(is_of_torch("prims::log"));
}

TEST(OpTraits, AreOneRowForAllDevices) {
    EXPECT_EQ(&traits_of("aten::cudnn_convolution"), &traits_of("aten::mkldnn_convolution"));
    EXPECT_EQ(&traits_of("aten::_cudnn_ctc_loss"), &traits_of("aten::_ctc_loss"));
    EXPECT_EQ(&traits_of("aten::cudnn_batch_norm"), &traits_of("aten::native_batch_norm"));
    EXPECT_EQ(&traits_of("aten::_scaled_dot_product_efficient_attention"),
              &traits_of("aten::_scaled_dot_product_flash_attention_for_cpu"));
}

TEST(OpTraits, NameTheOperandToBlame) {
    EXPECT_EQ(traits_of("aten::div").blamed, 1);
    EXPECT_EQ(traits_of("aten::remainder").blamed, 1);
    EXPECT_EQ(traits_of("aten::addcdiv").blamed, 2);
    EXPECT_EQ(traits_of("aten::log").blamed, 0);
    EXPECT_EQ(traits_of("aten::rsqrt").blamed, 0);
    EXPECT_EQ(traits_of("aten::mm").blamed, -1);
}

TEST(OpTraits, OfTheMatmulFamilyAreAlike) {
    for (const char* op : {"mm", "bmm", "mv", "dot", "addmm", "baddbmm", "addbmm", "addmv"}) {
        const OpTraits& traits = traits_of(op);
        EXPECT_TRUE(is_matrix_product(traits)) << op;
        EXPECT_TRUE(traits.has(kLayer) && traits.has(Role::kBoundary) && traits.has(kReduces)) << op;
        EXPECT_EQ(traits.kept_of(1), kNaN | kAnyInf) << op;
    }
}

TEST(OpTraits, KeepValuesOfTheFirstOperandsOnly) {
    EXPECT_EQ(traits_of("aten::div").kept_of(0), kNaN | kAnyInf);
    EXPECT_EQ(traits_of("aten::div").kept_of(1), 0) << "what is divided by an infinity is finite";
    EXPECT_EQ(traits_of("aten::clamp").kept_of(0), kNaN);
    EXPECT_EQ(traits_of("aten::no_such_op").kept_of(0), 0);
}

TEST(ListedClass, TellsVariantsApart) {
    EXPECT_EQ(op_table::listed_class("aten::copy_"), OpClass::Overwriting);
    EXPECT_EQ(op_table::listed_class("aten::_foreach_copy_"), OpClass::Overwriting);
    EXPECT_EQ(op_table::listed_class("aten::_foreach_zero_"), OpClass::Overwriting);
    EXPECT_EQ(op_table::listed_class("aten::_to_copy"), OpClass::Other);
    EXPECT_EQ(op_table::listed_class("aten::neg"), OpClass::Preserving);
    EXPECT_EQ(op_table::listed_class("aten::neg_"), OpClass::Other);
    EXPECT_EQ(op_table::listed_class("aten::_foreach_neg"), OpClass::Other);
    EXPECT_EQ(op_table::listed_class("aten::index_put_"), OpClass::Constant);
    EXPECT_EQ(op_table::listed_class("aten::index_put"), OpClass::Other);
    EXPECT_EQ(op_table::listed_class("aten::resize_"), OpClass::Allocation);
    EXPECT_EQ(op_table::listed_class("aten::_amp_update_scale_"), OpClass::LossScale);
    EXPECT_EQ(op_table::listed_class("aten::_local_scalar_dense"), OpClass::HostRead);
    EXPECT_EQ(op_table::listed_class("c10d::scatter_"), OpClass::Other) << "no operator of aten's";
    EXPECT_EQ(op_table::listed_class("aten::__and__"), OpClass::Other);
}

TEST(IntegerOpOf, FollowsFromTheForm) {
    EXPECT_EQ(op_table::integer_op("aten::add_"), IntegerOp::Add);
    EXPECT_EQ(op_table::integer_op("aten::rsub"), IntegerOp::SubtractFrom);
    EXPECT_EQ(op_table::integer_op("aten::pow"), IntegerOp::Power);
    EXPECT_EQ(op_table::integer_op("aten::_to_copy"), IntegerOp::Cast);
    EXPECT_EQ(op_table::integer_op("aten::cumprod"), IntegerOp::Gather);
    EXPECT_EQ(op_table::integer_op("aten::bmm"), IntegerOp::Gather);
    EXPECT_EQ(op_table::integer_op("aten::div"), IntegerOp::None);
    EXPECT_EQ(op_table::integer_op("aten::_foreach_add"), IntegerOp::None);
    EXPECT_EQ(op_table::integer_op("mylib::add"), IntegerOp::None);
}

struct Pair {
    const char* node;
    const char* op;
    bool same;
};

TEST(NodeIsMadeBy, Table) {
    const Pair table[] = {
        {"MulBackward0", "aten::mul", true},
        {"MulBackward0", "aten::mul_", true},
        {"MulBackward0", "aten::div", false},
        {"NllLossBackward0", "aten::nll_loss_forward", true},
        {"ScaledDotProductFlashAttentionForCpuBackward0", "aten::_scaled_dot_product_flash_attention_for_cpu", true},
        {"LogSoftmaxBackward0", "aten::_log_softmax", true},
        {"LogBackward0", "aten::log", true},
        {"LogBackward0", "aten::exp", false},
        {"AddmmBackward0", "aten::addmm", true},
        {"NativeBatchNormBackward0", "aten::native_batch_norm", true},
        {"LinalgVectorNormBackward0", "aten::linalg_vector_norm", true},
        {"SqrtBackward0", "aten::clamp", false},
        {"MeanBackward1", "aten::mean", true},
        {"torch::autograd::AccumulateGrad", "aten::mul", false},
        {"Backward", "aten::mul", false},
        {"", "aten::mul", false},
        {"MulBackward0", "", false},
    };
    for (const Pair& p : table) EXPECT_EQ(node_is_made_by(p.node, p.op), p.same) << p.node << " " << p.op;
}

}  // namespace
}  // namespace numsan
