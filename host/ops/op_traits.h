// What an operator computes, and what that means for values that are not finite, zero or too large: one row of
// operators.def. Plain data; any thread; nothing throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "host/base/adapter_abi.h"
#include "host/base/health.h"

namespace numsan {

/// The formula of an operator. effect() knows no more of an operator than this and its row.
enum class Form : uint8_t {
    Unknown,  ///< nothing is known of it
    // Results are operands, or some of them.
    Move,       ///< copies, joins or picks elements: clone, cat, gather
    Cast,       ///< rounds to another type
    Negate,     ///< -x
    Magnitude,  ///< |x|
    Rectify,    ///< relu
    Extreme,    ///< largest or smallest of many
    Clamp,      ///< a bound below, above or both
    ClampBelow,
    ClampAbove,
    Choose,   ///< where: one operand or the other
    Replace,  ///< nan_to_num: finite numbers in place of others
    // Sums.
    Add,
    Subtract,
    SubtractFrom,  ///< the first operand from the second
    Interpolate,   ///< a + w * (b - a)
    Sum,           ///< also cumulative
    Mean,
    Deviation,  ///< variance or standard deviation
    Norm,       ///< root of a sum of squares
    // Products.
    Multiply,
    Product,           ///< of many elements, also cumulative
    MatrixProduct,     ///< a @ b
    AddMatrixProduct,  ///< c + a @ b
    Convolve,          ///< operands: values, weight, bias
    ConvolveBackward,  ///< operands: gradient of the result, values, weight
    AddProduct,        ///< c + a * b
    Square,
    Power,
    // Quotients.
    Divide,
    Remainder,
    AddQuotient,  ///< c + a / b
    Reciprocal,
    InverseRoot,  ///< 1 / sqrt(x)
    // Functions with a domain or a pole.
    Root,
    Log,  ///< to any base
    Log1p,
    ArcSine,  ///< asin and acos: defined from -1 to 1
    ArcCosh,
    ArcTanh,  ///< atanh and erfinv: poles at -1 and 1
    Logit,    ///< poles at 0 and 1
    LogDeterminant,
    Domain,  ///< another function that is not defined everywhere: lgamma, xlogy
    // Exponentials.
    Exp,
    Exp2,
    Expm1,
    Hyperbolic,  ///< sinh and cosh
    // Functions with small results.
    Bounded,  ///< tanh, sin: from -1 to 1; round, floor: near the operand
    Sigmoid,
    Softmax,
    LogSoftmax,
    LogSumExp,
    // Ops that write without reading.
    Finite,      ///< zeros, ones, random numbers
    Fill,        ///< a number of the program's
    FillPlaces,  ///< a number of the program's where a mask or an index says so
    // Layers, losses, optimizers.
    BatchNorm,
    WeightNorm,
    CtcLoss,
    BinaryCrossEntropy,  ///< operands: predictions, targets from 0 to 1
    FusedUpdate,         ///< an optimizer's step that divides by a root of squared gradients
};

/// Results that an operator can make of finite operands.
enum class Total : uint8_t {
    No,    ///< a NaN or an infinity, where the operator is not defined
    None,  ///< finite ones: no result is larger than the operands, or all results are small
    Slow,  ///< sums and products: too large soon in a 16-bit type, in a wider one only of operands near its range
    Fast,  ///< exponentials and powers: too large soon in any type
};

/// What rules ask of an operator beside its form. A set of them is OpTraits::roles.
enum Role : uint16_t {
    kBoundary = 1,     ///< the tiers boundary and above read its results, however large
    kLayer = 2,        ///< belongs to a model's own computation, not to an optimizer's
    kReduces = 4,      ///< makes one result of many elements
    kSaturates = 8,    ///< rounds to a limit: 0, 1 or a bound
    kLoss = 16,        ///< is a loss
    kAnswers = 32,     ///< answers a question about values, or joins answers: a program's own check is made of such ops
    kKeepsZeros = 64,  ///< makes a zero of a zero
    kZerosOfZeros = 128,  ///< makes a zero of nothing but a zero, as long as its type holds the result
    kFewUndefined = 256,  ///< makes a NaN of no elements, or of too few
    kConstant = 512,      ///< makes what the numbers of its call say, of no tensor's values: arange, full
    kRandom = 1024,       ///< makes random numbers
};

struct OpTraits {
    std::string_view names;  ///< plain names between spaces: one operator's names, on any device
    Form form = Form::Unknown;
    OpClass op_class = OpClass::Other;  ///< of aten's operator; Other: its schema decides
    OpClass in_place = OpClass::Other;  ///< of the variant that writes its first argument
    int16_t blamed = -1;                ///< operand that explains a result which is not finite; -1: the largest one
    Total total = Total::No;
    KindSet kept = 0;     ///< kinds that leave a result not finite wherever an operand has them
    uint8_t keepers = 1;  ///< operands of which that holds, from the first
    uint16_t roles = 0;   ///< set of Role

    bool has(Role role) const noexcept { return (roles & role) != 0; }
    bool is(std::initializer_list<Form> forms) const noexcept {
        for (const Form one : forms) {
            if (one == form) return true;
        }
        return false;
    }
    KindSet kept_of(int32_t operand) const noexcept { return operand < keepers ? kept : KindSet(0); }
};

/// "aten::add_.Tensor" -> "add": without namespace, overload, in-place underscore and foreach prefix. A part of `op`.
constexpr std::string_view plain_op_name(std::string_view op) noexcept {
    if (const size_t colons = op.rfind("::"); colons != std::string_view::npos) op.remove_prefix(colons + 2);
    if (const size_t dot = op.find('.'); dot != std::string_view::npos) op = op.substr(0, dot);
    constexpr std::string_view kForeach = "_foreach_";
    if (op.substr(0, kForeach.size()) == kForeach) op.remove_prefix(kForeach.size());
    if (op.substr(0, 2) == "__") return op;  // __and__ does not write in place
    while (!op.empty() && op.back() == '_') op.remove_suffix(1);
    return op;
}

/// Namespaces that torch registers beside aten, when it is imported or a part of it is.
inline constexpr std::string_view kTorchNamespaces[] = {
    "prims", "prim", "debugprims", "rngprims", "flex_lib", "inductor",
    // distributed
    "c10d", "c10d_functional", "_c10d_functional", "_c10d_functional_autograd", "symm_mem", "fsdp", "_dtensor", "pippy",
    // quantized, and prepared for one library of kernels
    "quantized", "_quantized", "quantized_decomposed", "mkl", "mkldnn", "mkldnn_prepacked", "onednn", "prepacked",
    "static_runtime", "onnx_symbolic",
    // about a program rather than of it
    "debug_mode_ops"};
/// Its operators in namespaces whose names are words that a program may well have for its own.
inline constexpr std::string_view kTorchOperators[] = {"export::access_subclass_inner_tensor",
                                                       "onnx::Attention",
                                                       "onnx::Reshape",
                                                       "onnx::RotaryEmbedding",
                                                       "onnx::Shape",
                                                       "profiler::_call_end_callbacks_on_jit_fut",
                                                       "profiler::_record_function_enter",
                                                       "profiler::_record_function_enter_new",
                                                       "profiler::_record_function_exit",
                                                       "quantization::_Bfloat16QuantizedToFloat",
                                                       "quantization::_FloatToBfloat16Quantized",
                                                       "sparse::qlinear",
                                                       "sparse::qlinear_dynamic",
                                                       "sparse::qlinear_prepack",
                                                       "sparse::qlinear_relu",
                                                       "sparse::qlinear_relu_dynamic",
                                                       "sparse::qlinear_unpack",
                                                       "streams::fork",
                                                       "streams::join",
                                                       "streams::record_event",
                                                       "streams::record_stream",
                                                       "streams::sync_dealloc",
                                                       "streams::wait_event",
                                                       "streams::wait_stream"};

/// The end of the name of a kernel that a program launched itself: "ns::scale<float><<<>>>", as CUDA writes launches.
/// No operator has such a name.
inline constexpr std::string_view kKernelMark = "<<<>>>";
constexpr bool is_kernel(std::string_view op) noexcept { return op.ends_with(kKernelMark); }

/// The end of the name of a call of a library's that a program made itself: "cublasSgemm()". All of those add up:
/// products of matrices, Fourier transforms, sums over ranks. They make no infinity of finite operands but by overflow.
inline constexpr std::string_view kLibraryCallMark = "()";
constexpr bool is_library_call(std::string_view op) noexcept { return op.ends_with(kLibraryCallMark); }

/// One that adds up what several ranks put in, of which this one's share alone is seen: "ncclAllReduce()".
constexpr bool is_over_ranks(std::string_view op) noexcept { return is_library_call(op) && op.starts_with("nccl"); }

/// It was seen in a program without a framework, of which nothing is known but such ops.
constexpr bool is_of_plain_program(std::string_view op) noexcept { return is_kernel(op) || is_library_call(op); }

/// Whether torch defines the operator; any other is the program's or a library's own. `op` with its namespace.
constexpr bool is_of_torch(std::string_view op) noexcept {
    if (op.substr(0, 6) == "aten::") return true;
    if (is_of_plain_program(op)) return false;
    const size_t colons = op.find("::");
    if (colons == std::string_view::npos) return true;
    for (const std::string_view one : kTorchNamespaces) {
        if (op.substr(0, colons) == one) return true;
    }
    op = op.substr(0, op.find('.', colons));
    for (const std::string_view one : kTorchOperators) {
        if (op == one) return true;
    }
    return false;
}

/// The operator's row, by its name with or without namespace and overload; an empty row where the table has none, or
/// the operator is not torch's.
const OpTraits& traits_of(std::string_view op) noexcept;
inline const OpTraits& traits_of(const OpEvent& event) noexcept { return traits_of(event.op->name); }

/// True when an autograd node of this name ("MulBackward0") is what this operator ("aten::mul") makes.
bool node_is_made_by(std::string_view node, std::string_view op);

// Families of forms.
inline bool is_exponential(const OpTraits& op) { return op.is({Form::Exp, Form::Exp2, Form::Expm1}); }
inline bool is_logarithm(const OpTraits& op) { return op.is({Form::Log, Form::Log1p}); }
inline bool is_matrix_product(const OpTraits& op) { return op.is({Form::MatrixProduct, Form::AddMatrixProduct}); }
inline bool is_clamp(const OpTraits& op) { return op.is({Form::Clamp, Form::ClampBelow, Form::ClampAbove}); }
/// Divides by its blamed operand, or by a root of it.
inline bool divides(const OpTraits& op) {
    return op.is({Form::Divide, Form::Remainder, Form::AddQuotient, Form::Reciprocal, Form::InverseRoot});
}
/// Is not defined for every finite number; division apart.
inline bool has_domain(const OpTraits& op) {
    return op.is(
        {Form::Root, Form::Log, Form::Log1p, Form::ArcSine, Form::ArcCosh, Form::ArcTanh, Form::Logit, Form::Domain});
}
/// Adds up products.
inline bool sums_products(const OpTraits& op) {
    return is_matrix_product(op) || op.is({Form::Convolve, Form::ConvolveBackward});
}
/// Multiplies or divides element by element.
inline bool scales(const OpTraits& op) { return op.is({Form::Multiply, Form::Divide}); }
/// Its results are as large as what it read: a copy, perhaps of another type or sign. `op_class`: the operator's own.
inline bool hands_on(const OpTraits& op, OpClass op_class) {
    return op_class == OpClass::Preserving || op.is({Form::Cast, Form::Negate, Form::Magnitude});
}
/// Its result may be zero in a narrow type though no operand is.
inline bool may_flush(const OpTraits& op) {
    return sums_products(op) || op.is({Form::Cast, Form::Multiply, Form::Divide, Form::Square, Form::Power});
}

}  // namespace numsan
