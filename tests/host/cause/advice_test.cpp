// What help says: made-up measurements against a golden file, NUMSAN_UPDATE_GOLDEN=1 rewrites it; no row is out of
// reach.
#include "host/cause/advice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <set>

#include "host/finding/tables.h"
#include "tests/support/builders.h"

#pragma GCC diagnostic ignored \
    "-Wmissing-field-initializers"  // GCC 12 warns of members without an initialiser of their own

namespace numsan {
namespace {

struct Case {
    CategoryId category;
    Mechanism mechanism;
    Features features;
};

// clang-format off
const Case kCases[] = {
    {"N3", Mechanism::DOM, {.op = "log", .hidden = true}},
    {"N3", Mechanism::OVF, {.op = "exp", .hidden = true}},
    {"N3", Mechanism::DOM, {.op = "acosh", .hidden = true}},
    {"N3", Mechanism::DOM, {.op = "div", .hidden = true}},
    {"N3", Mechanism::DOM, {.op = "logit", .hidden = true}},
    {"N8", Mechanism::DOM,
     {.op = "log", .phase = Phase::Data, .wrapped_op = "_to_copy", .wrapped_type = IntegerType::Int8}},
    {"N8", Mechanism::DOM,
     {.op = "sqrt", .phase = Phase::Data, .wrapped_op = "mul", .wrapped_type = IntegerType::Int32}},
    {"N1", Mechanism::DOM,
     {.op = "sqrt", .phase = Phase::Data, .wrapped_op = "mul", .wrapped_type = IntegerType::Int64}},
    {"N1", Mechanism::HYPER, {.op = "convolution", .wrong_target = 255}},
    {"N8", Mechanism::DIV0, {.op = "div", .phase = Phase::Data, .cut = "a fraction"}},
    {"N9", Mechanism::STATE, {.op = "external", .phase = Phase::Load, .written_over = true, .overwritten = true}},
    {"N9", Mechanism::DATA, {.op = "external", .written_over = true, .overwritten = true}},
    {"N1", Mechanism::DATA, {.op = "external", .phase = Phase::Data, .written_over = true}},
    {"N4", Mechanism::DATA, {.op = "_ctc_loss"}},
    {"N9", Mechanism::OVF, {.op = "allreduce", .phase = Phase::Comm, .dtype = DType::Float16}},
    {"N9", Mechanism::OPAQUE, {.op = "allreduce", .phase = Phase::Comm}},
    {"N9", Mechanism::RACE, {.op = "allgather", .phase = Phase::Comm}},
    {"N8", Mechanism::UDF, {.op = "mul", .forward_op = "mul", .phase = Phase::Backward, .dtype = DType::Float16}},
    {"N8", Mechanism::UDF, {.op = "mul", .forward_op = "mul", .phase = Phase::Backward, .dtype = DType::Float8E4M3Fn}},
    {"N8", Mechanism::UDF, {.op = "mul", .forward_op = "mul", .phase = Phase::Backward, .dtype = DType::BFloat16}},
    {"N8", Mechanism::UDF, {.op = "mul", .forward_op = "mul", .phase = Phase::Backward, .dtype = DType::Float16,
                     .scaler = true}},
    {"N8", Mechanism::PREC, {.op = "add", .phase = Phase::Optimizer, .dtype = DType::BFloat16}},
    {"N8", Mechanism::PREC, {.op = "lerp", .phase = Phase::Optimizer, .dtype = DType::BFloat16}},
    {"N8", Mechanism::PREC, {.op = "_to_copy", .phase = Phase::Forward, .dtype = DType::Float8E4M3Fn}},
    {"N8", Mechanism::OVF, {.op = "sum", .near_overflow = true, .phase = Phase::Forward, .dtype = DType::Float16}},
    {"N8", Mechanism::UDF, {.op = "mul", .phase = Phase::Optimizer, .dtype = DType::Float16}},
    {"N8", Mechanism::UDF, {.op = "_to_copy", .phase = Phase::Forward, .dtype = DType::Float8E4M3Fn}},
    {"N8", Mechanism::UDF, {.op = "mul", .phase = Phase::Forward, .dtype = DType::Float16}},
    {"N8", Mechanism::UDF, {.op = "mul", .phase = Phase::Backward}},
    {"N8", Mechanism::DIV0, {.op = "addcdiv", .phase = Phase::Optimizer, .dtype = DType::Float16}},
    {"N5", Mechanism::DIV0, {.op = "addcdiv", .phase = Phase::Optimizer}},
    {"N5", Mechanism::DIV0, {.op = "rsqrt", .phase = Phase::Optimizer}},
    {"N5", Mechanism::DIV0, {.op = "div", .phase = Phase::Optimizer, .reduction = "linalg_vector_norm"}},
    {"N5", Mechanism::DOM, {.op = "sqrt", .phase = Phase::Optimizer}},
    {"N5", Mechanism::OVF, {.op = "addcmul", .phase = Phase::Optimizer}},
    {"N5", Mechanism::OVF, {.op = "mul", .phase = Phase::Optimizer, .dtype = DType::BFloat16}},
    {"N5", Mechanism::HYPER, {.op = "mm", .phase = Phase::Forward, .step = 4}},
    {"N5", Mechanism::OVF, {.op = "mm", .phase = Phase::Forward, .step = 4}},
    {"N5", Mechanism::SING,
     {.op = "div", .forward_op = "sqrt", .phase = Phase::Backward, .step = 4, .loss_growth = 5000}},
    {"N5", Mechanism::DIV0, {.op = "div", .phase = Phase::Forward, .by_number = true, .step = 4}},
    {"N5", Mechanism::HYPER, {.op = "mul", .phase = Phase::Optimizer}},
    {"N6", Mechanism::UNINIT, {.op = "mul", .phase = Phase::Load, .reads_parameter = true}},
    {"N9", Mechanism::UNINIT, {.op = "add", .phase = Phase::Forward}},
    {"N6", Mechanism::STATE, {.op = "copy", .phase = Phase::Load, .step = 3}},
    {"N6", Mechanism::STATE, {.op = "mul", .phase = Phase::Load, .reads_parameter = true}},
    {"N5", Mechanism::DATA, {.op = "add", .phase = Phase::Optimizer, .bad_number = true}},
    {"N5", Mechanism::DATA, {.op = "mul", .phase = Phase::Forward, .bad_number = true}},
    {"N1", Mechanism::DATA, {.op = "mul", .phase = Phase::Data}},
    {"N1", Mechanism::DATA, {.op = "mul", .phase = Phase::Backward}},
    {"N9", Mechanism::RACE, {.op = "add"}},
    {"N9", Mechanism::HW, {.op = "mm"}},
    {"N8", Mechanism::OVF, {.op = "mul", .kind = kNegInf, .dtype = DType::Float16}},
    {"N8", Mechanism::OVF, {.op = "add", .kind = kNegInf, .dtype = DType::BFloat16}},
    {"N8", Mechanism::OVF, {.op = "_to_copy", .dtype = DType::Float8E4M3Fn}},
    {"N8", Mechanism::OVF, {.op = "_to_copy", .dtype = DType::Float16, .operand_touched = true}},
    {"N8", Mechanism::OVF, {.op = "bmm", .dtype = DType::Float16, .operand_touched = true}},
    {"N8", Mechanism::OVF, {.op = "sum", .dtype = DType::Float16, .operand_touched = true}},
    {"N8", Mechanism::OVF, {.op = "linalg_vector_norm", .dtype = DType::Float16, .operand_touched = true}},
    {"N8", Mechanism::OVF, {.op = "mul", .forward_op = "mul", .phase = Phase::Backward, .dtype = DType::Float16}},
    {"N8", Mechanism::OVF, {.op = "mul", .forward_op = "mul", .phase = Phase::Backward, .dtype = DType::Float16,
                     .scaler = true}},
    {"N8", Mechanism::OVF, {.op = "square", .dtype = DType::Float16, .operand_touched = true}},
    {"N8", Mechanism::DIV0, {.op = "div", .dtype = DType::Float16, .operand_touched = true}},
    {"N8", Mechanism::DOM, {.op = "log", .dtype = DType::Float16, .operand_touched = true, .rounded = {.op = "clamp"}}},
    {"N8", Mechanism::DOM, {.op = "log", .dtype = DType::BFloat16, .operand_touched = true,
      .rounded = {.op = "sigmoid"}}},
    {"N8", Mechanism::DOM, {.op = "acos", .dtype = DType::BFloat16, .operand_touched = true}},
    {"N8", Mechanism::DOM, {.op = "log", .dtype = DType::Float16, .operand_touched = true}},
    {"N8", Mechanism::DOM, {.op = "log", .narrow_upstream = true, .operand_touched = true}},
    {"N7", Mechanism::INDET, {.op = "_softmax"}},
    {"N7", Mechanism::INDET, {.op = "_log_softmax"}},
    {"N7", Mechanism::INDET, {.op = "logsumexp"}},
    {"N7", Mechanism::INDET, {.op = "mul"}},
    {"N7", Mechanism::INDET, {.op = "bmm"}},
    {"N7", Mechanism::INDET, {.op = "sub", .reduction = "amax"}},
    {"N7", Mechanism::INDET, {.op = "mul", .forward_op = "logsumexp", .phase = Phase::Backward}},
    {"N7", Mechanism::INDET, {.op = "add"}},
    {"N7", Mechanism::INDET, {.op = "_softmax", .dtype = DType::Float16}},
    {"N3", Mechanism::SING, {.op = "div", .phase = Phase::Backward, .own_backward = true}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "sqrt", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "rsqrt", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "linalg_vector_norm", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "std", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "acos", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "asin", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "atanh", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "acosh", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "log", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "log1p", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "xlogy", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "special_entr", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "pow", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "div", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "atan2", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "_linalg_svd", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "_linalg_eigh", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "exp", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "logsumexp", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "linalg_inv_ex", .phase = Phase::Backward}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "sqrt", .phase = Phase::Backward, .dtype = DType::Float16}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "rsqrt", .phase = Phase::Backward, .dtype = DType::Float16}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "acos", .phase = Phase::Backward, .dtype = DType::Float16}},
    {"N3", Mechanism::SING, {.op = "div", .forward_op = "acos", .phase = Phase::Backward, .dtype = DType::BFloat16}},
    {"N3", Mechanism::SING, {.op = "mul", .forward_op = "sinc", .phase = Phase::Backward}},
    {"N3", Mechanism::OVF, {.op = "mul", .forward_op = "mul", .phase = Phase::Backward}},
    {"N1", Mechanism::DOM, {.op = "log", .phase = Phase::Data}},
    {"N4", Mechanism::DOM, {.op = "log", .operand_touched = true, .rounded = {.op = "_softmax"}, .loss_known = true,
      .after_parameters = true}},
    {"N2", Mechanism::DOM, {.op = "log", .operand_touched = true, .rounded = {.op = "_softmax"}}},
    {"N4", Mechanism::DOM, {.op = "log", .operand_touched = true, .rounded = {.op = "sigmoid"}, .loss_known = true,
      .after_parameters = true}},
    {"N2", Mechanism::DOM, {.op = "log1p", .operand_touched = true, .rounded = {.op = "sigmoid"}}},
    {"N2", Mechanism::DOM, {.op = "log", .operand_touched = true, .rounded = {.op = "tanh"}}},
    {"N2", Mechanism::DOM, {.op = "atanh", .operand_touched = true, .rounded = {.op = "tanh"}}},
    {"N2", Mechanism::DOM, {.op = "logit", .operand_touched = true, .rounded = {.op = "sigmoid"}}},
    {"N4", Mechanism::DOM, {.op = "log", .operand_touched = true, .rounded = {.op = "_log_softmax"}, .loss_known = true,
      .after_parameters = true}},
    {"N4", Mechanism::DOM, {.op = "log", .operand_touched = true, .rounded = {.op = "exp", .summed = true},
      .loss_known = true, .after_parameters = true}},
    {"N4", Mechanism::DOM, {.op = "log", .operand_touched = true, .rounded = {.op = "exp", .matrix_product = true},
      .loss_known = true, .after_parameters = true}},
    {"N4", Mechanism::DOM, {.op = "log1p", .operand_touched = true, .rounded = {.op = "exp", .subtracted = true},
      .loss_known = true, .after_parameters = true}},
    {"N4", Mechanism::DOM, {.op = "log", .operand_touched = true, .rounded = {.op = "exp"}, .loss_known = true,
      .after_parameters = true}},
    {"N4", Mechanism::DOM, {.op = "log", .operand_touched = true, .rounded = {.op = "erf"}, .loss_known = true,
      .after_parameters = true}},
    {"N4", Mechanism::DOM, {.op = "log", .operand_touched = true, .rounded = {.op = "cumprod"}, .loss_known = true,
      .after_parameters = true}},
    {"N4", Mechanism::DOM, {.op = "log", .operand_touched = true, .rounded = {.op = "one_hot"}, .loss_known = true,
      .after_parameters = true}},
    {"N2", Mechanism::DOM, {.op = "log", .operand_touched = true, .rounded = {.op = "clamp_min"}}},
    {"N2", Mechanism::DOM, {.op = "sqrt", .operand_touched = true, .reduction = "mean"}},
    {"N2", Mechanism::DOM, {.op = "sqrt", .operand_touched = true, .reduction = "mm"}},
    {"N2", Mechanism::DOM, {.op = "log10", .operand_touched = true}},
    {"N2", Mechanism::DOM, {.op = "sqrt", .operand_touched = true}},
    {"N2", Mechanism::DOM, {.op = "lgamma", .operand_touched = true}},
    {"N2", Mechanism::DOM, {.op = "acos", .operand_touched = true}},
    {"N2", Mechanism::DOM, {.op = "asin", .operand_touched = true}},
    {"N2", Mechanism::DOM, {.op = "atanh", .operand_touched = true}},
    {"N2", Mechanism::DOM, {.op = "erfinv", .operand_touched = true}},
    {"N2", Mechanism::DOM, {.op = "acosh", .operand_touched = true}},
    {"N2", Mechanism::DOM, {.op = "log1p", .operand_touched = true}},
    {"N2", Mechanism::DOM, {.op = "logit", .operand_touched = true}},
    {"N2", Mechanism::DOM, {.op = "xlogy", .operand_touched = true}},
    {"N2", Mechanism::DOM, {.op = "special_xlog1py", .operand_touched = true}},
    {"N2", Mechanism::DOM, {.op = "polygamma", .operand_touched = true}},
    {"N2", Mechanism::DOM, {.op = "pow", .operand_touched = true}},
    {"N2", Mechanism::DOM, {.op = "log", .dtype = DType::Float64, .operand_touched = true}},
    {"N2", Mechanism::DOM, {.op = "new_op", .operand_touched = true}},
    {"N1", Mechanism::DIV0, {.op = "div", .phase = Phase::Data}},
    {"N1", Mechanism::DIV0, {.op = "div", .phase = Phase::Data, .reduction = "std"}},
    {"N4", Mechanism::DIV0, {.op = "mean", .operand_touched = true, .operand_known = true}},
    {"N4", Mechanism::DIV0, {.op = "nll_loss_forward", .operand_touched = true, .operand_known = true}},
    {"N4", Mechanism::DIV0, {.op = "std", .operand_touched = true, .operand_known = true}},
    {"N4", Mechanism::DIV0, {.op = "rsqrt", .operand_touched = true, .operand_known = true}},
    {"N4", Mechanism::DIV0, {.op = "div", .operand_touched = true, .operand_known = true}},
    {"N4", Mechanism::DIV0, {.op = "fmod", .operand_touched = true, .operand_known = true}},
    {"N4", Mechanism::DIV0, {.op = "addcdiv", .operand_touched = true, .operand_known = true}},
    {"N4", Mechanism::DIV0, {.op = "pow", .operand_touched = true, .operand_known = true}},
    {"N4", Mechanism::DIV0, {.op = "div"}},
    {"N8", Mechanism::DIV0, {.op = "rsqrt", .dtype = DType::Float16, .operand_touched = true}},
    {"N4", Mechanism::DIV0, {.op = "div", .operand_touched = true, .rounded = {.op = "exp"}, .reduction = "sum"}},
    {"N7", Mechanism::DIV0, {.op = "div", .operand_touched = true, .reduction = "linalg_vector_norm"}},
    {"N7", Mechanism::DIV0, {.op = "div", .operand_touched = true, .reduction = "std"}},
    {"N7", Mechanism::DIV0, {.op = "div", .operand_touched = true, .reduction = "var"}},
    {"N7", Mechanism::DIV0, {.op = "div", .operand_touched = true, .reduction = "amax"}},
    {"N7", Mechanism::DIV0, {.op = "div", .operand_touched = true, .reduction = "sum"}},
    {"N7", Mechanism::DIV0, {.op = "div", .operand_touched = true, .reduction = "bincount"}},
    {"N4", Mechanism::DIV0, {.op = "new_op", .operand_touched = true}},
    {"N4", Mechanism::OVF, {.op = "exp", .operand_touched = true, .loss_known = true, .after_parameters = true}},
    {"N2", Mechanism::OVF, {.op = "exp", .operand_touched = true}},
    {"N2", Mechanism::OVF, {.op = "exp2", .operand_touched = true}},
    {"N2", Mechanism::OVF, {.op = "sinh", .operand_touched = true}},
    {"N6", Mechanism::OVF, {.op = "mul", .reads_parameter = true, .operand_touched = true}},
    {"N1", Mechanism::OVF, {.op = "mul", .phase = Phase::Data}},
    {"N7", Mechanism::OVF, {.op = "mm", .operand_touched = true}},
    {"N2", Mechanism::OVF, {.op = "pow", .operand_touched = true}},
    {"N2", Mechanism::OVF, {.op = "square", .operand_touched = true}},
    {"N2", Mechanism::OVF, {.op = "div", .operand_touched = true}},
    {"N2", Mechanism::OVF, {.op = "sum", .operand_touched = true}},
    {"N2", Mechanism::OVF, {.op = "_linalg_slogdet", .operand_touched = true}},
    {"N2", Mechanism::OVF, {.op = "exp", .dtype = DType::BFloat16, .operand_touched = true}},
    {"N9", Mechanism::OPAQUE, {.op = "_scaled_dot_product_flash_attention"}},
    {"N9", Mechanism::OPAQUE, {.op = "convolution"}},
    {"N9", Mechanism::OPAQUE, {.op = "mm"}},
    {"N8", Mechanism::OVF, {.op = kCompiledRegion, .dtype = DType::Float16}},
    {"U", Mechanism::INDET, {.op = kCompiledRegion}},
    {"U", Mechanism::INDET, {.op = kCompiledRegion, .package = true}},
    {"U", Mechanism::OVF, {.op = "ns::update<<<>>>"}},
    {"U", Mechanism::OPAQUE, {.op = "update<<<>>>"}},
    {"U", Mechanism::OVF, {.op = "cublasSgemm()"}},
    {"N1", Mechanism::HYPER, {.op = "binary_cross_entropy_with_logits", .step = 9, .loss_growth = 5000}},
    {"N8", Mechanism::UDF, {.op = "rsqrt", .dtype = DType::Float16, .flushed = "the number that was added is zero"}},
    {"N5", Mechanism::DOM, {.op = "log", .operand_constant = true, .first_run = true}},
    {"N5", Mechanism::DIV0, {.op = "div", .phase = Phase::Data, .operand_constant = true, .first_run = true}},
    {"N1", Mechanism::DIV0, {.op = "div", .phase = Phase::Data, .operand_constant = true, .step = 9}},
    {"N1", Mechanism::DATA, {.op = "scalar_tensor", .phase = Phase::Data}},
    {"N6", Mechanism::DOM, {.op = "log", .phase = Phase::Load}},
    {"N2", Mechanism::DOM, {.op = "log", .operand_touched = true, .operand_is_parameter = true}},
    {"N2", Mechanism::DOM, {.op = "log", .kind = kNegInf, .operand_touched = true}},
    {"N4", Mechanism::DOM, {.op = "log", .kind = kNegInf, .operand_touched = true, .hidden = true}},
    {"N4", Mechanism::DOM, {.op = "log", .kind = kNegInf, .operand_touched = true, .rounded = {.op = "_softmax"},
      .hidden = true}},
    {"N4", Mechanism::DIV0, {.op = "mean", .operand_touched = true, .hidden = true}},
    {"N4", Mechanism::DIV0, {.op = "div", .operand_touched = true, .hidden = true}},
    {"N5", Mechanism::HYPER, {.op = "convolution", .step = 4, .hidden = true}},
    {"N2", Mechanism::DOM, {.op = "pow", .operand_max = 0.9, .operand_touched = true}},
    {"N4", Mechanism::DOM, {.op = "log", .step = 3}},
    {"N2", Mechanism::DIV0, {.op = "div", .operand_touched = true, .step = 3}},
    {"N2", Mechanism::DIV0, {.op = "div"}},
    {"N2", Mechanism::DOM, {.op = "sqrt", .first_run = true, .in_module = true}},
    {"N2", Mechanism::OVF, {.op = "exp", .operand_touched = true, .reduction = "mm"}},
    {"N2", Mechanism::OVF, {.op = "exp", .operand_touched = true, .reduction = "addmm"}},
};
// clang-format on

std::string heading(const Case& made) {
    const Features& f = made.features;
    std::string text = std::string(to_string(made.category)) + " " + to_string(made.mechanism) + " " + f.op + " " +
                       to_string(f.phase) + " " + info(f.dtype).name;
    if (!f.forward_op.empty()) text += " of " + f.forward_op;
    if (!f.rounded.op.empty()) text += " after " + f.rounded.op;
    if (!f.reduction.empty()) text += " after " + f.reduction;
    for (const auto& [fact, word] : {std::pair{f.hidden, " hidden"},
                                     {f.own_backward, " own_backward"},
                                     {f.reads_parameter, " parameter"},
                                     {f.operand_touched, " touched"},
                                     {f.loss_known, " in_loss"},
                                     {f.rounded.summed, " summed"},
                                     {f.rounded.matrix_product, " multiplied"},
                                     {f.rounded.subtracted, " subtracted"},
                                     {f.narrow_upstream, " rounded"},
                                     {f.operand_constant, " constant"},
                                     {f.operand_is_parameter, " of a parameter"},
                                     {f.in_module, " in_module"},
                                     {f.first_run, " first run"},
                                     {f.kind == kNegInf, " -inf"},
                                     {f.step > 0, " later"},
                                     {f.scaler, " scaler"}}) {
        if (fact) text += word;
    }
    return text;
}

std::vector<std::string> sentences(const Features& features, CategoryId category, Mechanism mechanism) {
    std::vector<std::string> texts;
    for (const HelpLine& line : advice(features, category, mechanism)) texts.push_back(line.text);
    return texts;
}

std::vector<std::string> said(const Case& made) { return sentences(made.features, made.category, made.mechanism); }

TEST(Advice, Golden) {
    std::string text;
    for (const Case& made : kCases) {
        text += heading(made) + "\n";
        for (const HelpLine& line : advice(made.features, made.category, made.mechanism)) {
            text += "    " + line.text + "\n     ";
            for (size_t row = 0; row < std::size(kFixKinds); ++row) {
                if (line.fixes.contains(row)) text += std::string(" ") + kFixKinds[row].id;
            }
            text += "\n";
        }
    }
    const std::string path = std::string(NUMSAN_SOURCE_DIR) + "/tests/host/cause/golden/advice.txt";
    if (std::getenv("NUMSAN_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
    EXPECT_EQ(text, testing::file_text(path));
}

TEST(Advice, ARunningScalerIsNotProposed) {
    for (const Case& made : kCases) {
        Case scaled = made;
        scaled.features.scaler = true;
        for (const std::string& sentence : said(scaled))
            EXPECT_EQ(sentence.find("GradScaler"), std::string::npos) << heading(scaled) << ": " << sentence;
    }
}

TEST(Advice, EveryRowIsSelected) {
    std::set<size_t> seen;
    for (const Case& made : kCases) {
        for (const size_t row : advice_rows(made.features, made.category, made.mechanism)) seen.insert(row);
    }
    for (size_t row = 0; row < advice_row_count(); ++row)
        EXPECT_TRUE(seen.count(row)) << "row " << row << " of advice.def";
}

TEST(Advice, OneToThreeSentencesEachOnce) {
    for (const Case& made : kCases) {
        const std::vector<std::string> sentences = said(made);
        EXPECT_FALSE(sentences.empty()) << heading(made);
        EXPECT_LE(sentences.size(), kMaxAdvice) << heading(made);
        EXPECT_EQ(std::set<std::string>(sentences.begin(), sentences.end()).size(), sentences.size()) << heading(made);
    }
}

TEST(Advice, Wording) {
    for (const Case& made : kCases) {
        for (const std::string& sentence : said(made)) {
            EXPECT_EQ(sentence.find_first_of("{}"), std::string::npos) << sentence;
            EXPECT_EQ(sentence.find("``"), std::string::npos) << sentence;
            EXPECT_FALSE(std::isupper(static_cast<unsigned char>(sentence.front()))) << sentence;
            EXPECT_NE(sentence.back(), '.') << sentence;
            EXPECT_EQ(sentence.find("  "), std::string::npos) << sentence;
            EXPECT_EQ(std::count(sentence.begin(), sentence.end(), '`') % 2, 0) << sentence;
            EXPECT_EQ(std::count(sentence.begin(), sentence.end(), '('),
                      std::count(sentence.begin(), sentence.end(), ')'))
                << sentence;
        }
    }
}

TEST(Advice, EveryMechanismInEveryPhaseSaysSomething) {
    for (const MechanismInfo& mechanism : kMechanisms) {
        for (const Phase phase :
             {Phase::Forward, Phase::Backward, Phase::Optimizer, Phase::Data, Phase::Comm, Phase::Load}) {
            for (const DType dtype :
                 {DType::Float32, DType::Float16, DType::BFloat16, DType::Float8E4M3Fn, DType::Complex64}) {
                Features features{.op = "new_op", .phase = phase, .dtype = dtype};
                EXPECT_FALSE(advice(features, "U", mechanism.value).empty())
                    << mechanism.id << " " << to_string(phase) << " " << info(dtype).name;
            }
        }
    }
}

TEST(Advice, NumbersAreOfTheType) {
    const auto first = [](Mechanism mechanism, const char* op, DType dtype) {
        return sentences({.op = op, .dtype = dtype, .operand_touched = true}, "N2", mechanism).front();
    };
    EXPECT_EQ(first(Mechanism::DOM, "log", DType::Float64), "bound the operand from below: `x.clamp(min=1e-12).log()`");
    EXPECT_EQ(first(Mechanism::DOM, "log", DType::Float32), "bound the operand from below: `x.clamp(min=1e-12).log()`");
    EXPECT_EQ(first(Mechanism::DOM, "log", DType::BFloat16),
              "bound the operand from below: `x.clamp(min=1e-12).log()`");
    EXPECT_EQ(first(Mechanism::DOM, "log", DType::Float16), "bound the operand from below: `x.clamp(min=1e-4).log()`");
    EXPECT_EQ(first(Mechanism::DOM, "acosh", DType::Float64), "bound the operand: `x.clamp(min=1 + 1e-15).acosh()`");
    EXPECT_EQ(first(Mechanism::DOM, "acosh", DType::Float32), "bound the operand: `x.clamp(min=1 + 1e-6).acosh()`");
    EXPECT_EQ(first(Mechanism::DOM, "acosh", DType::BFloat16), "bound the operand: `x.clamp(min=1 + 1e-2).acosh()`");
    EXPECT_EQ(first(Mechanism::DOM, "acosh", DType::Float16), "bound the operand: `x.clamp(min=1 + 1e-3).acosh()`");
    EXPECT_EQ(first(Mechanism::OVF, "mul", DType::Float16),
              "compute this line in float32, `x.float()`: float16 ends at 65504");
    EXPECT_EQ(first(Mechanism::OVF, "mul", DType::Float8E4M3Fn),
              "compute this line in float32, `x.float()`: float8_e4m3fn ends at 448");
    EXPECT_EQ(first(Mechanism::OVF, "mul", DType::Float8E5M2),
              "compute this line in float32, `x.float()`: float8_e5m2 ends at 57344");
    EXPECT_EQ(first(Mechanism::OVF, "mul", DType::Float8E4M3Fnuz),
              "compute this line in float32, `x.float()`: float8_e4m3fnuz ends at 240");
    EXPECT_EQ(first(Mechanism::OVF, "exp2", DType::Float32),
              "bound the exponent: `x.clamp(max=127).exp2()`, float32 ends at 3.40282e+38");
    EXPECT_EQ(first(Mechanism::OVF, "expm1", DType::Float32),
              "bound the exponent: `x.clamp(max=88).expm1()`, float32 ends at 3.40282e+38");
    EXPECT_EQ(first(Mechanism::OVF, "expm1", DType::Float64),
              "bound the exponent: `x.clamp(max=709).expm1()`, float64 ends at 1.79769e+308");
}

TEST(Advice, RowsOfAnOpAreNotForADerivativeThatUsesIt) {
    const Features inside{.op = "log", .forward_op = "pow", .phase = Phase::Backward};
    for (const std::string& sentence : sentences(inside, "N3", Mechanism::DOM))
        EXPECT_EQ(sentence.find("log()"), std::string::npos) << sentence;
    const Features hook{.op = "sqrt", .phase = Phase::Backward};
    EXPECT_EQ(sentences(hook, "N3", Mechanism::DOM).front(),
              "bound the operand from below: `x.clamp(min=1e-12).sqrt()`");
}

}  // namespace
}  // namespace numsan
