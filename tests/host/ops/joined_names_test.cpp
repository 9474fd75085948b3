#include "host/ops/joined_names.h"

#include <gtest/gtest.h>

namespace numsan {
namespace {

TEST(JoinedNames, AreTakenAsLongAsTheyGo) {
    EXPECT_TRUE(has_op_name("cpp_fused_add_log_0", "log"));
    EXPECT_TRUE(has_op_name("cpp_fused_add_log_0", "add"));
    EXPECT_TRUE(has_op_name("cpp_fused__log_softmax_add_0", "_log_softmax"));
    EXPECT_FALSE(has_op_name("cpp_fused__log_softmax_add_0", "log"));
    EXPECT_FALSE(has_op_name("cpp_fused_log_sigmoid_forward_0", "sigmoid"));
    EXPECT_FALSE(has_op_name("cpp_fused_mul_tanh_backward_0", "tanh"));
    EXPECT_TRUE(has_op_name("cpp_fused_mul_tanh_tanh_backward_0", "tanh"));
    EXPECT_FALSE(has_op_name("cpp_fused_log1p_0", "log"));
    EXPECT_TRUE(has_op_name("cpp_fused_my_own_0", "own"));
    EXPECT_TRUE(has_op_name("log", "log"));
    EXPECT_FALSE(has_op_name("", "log"));
}

}  // namespace
}  // namespace numsan
