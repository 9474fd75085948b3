// What was measured at and around a birth: the facts that distinguish root causes. Plain data, owns nothing.
#pragma once

#include <cstdint>
#include <string>

#include "host/base/adapter_abi.h"
#include "host/base/dtype.h"
#include "host/base/health.h"
#include "host/base/integer_type.h"
#include "host/cause/rounded_operand.h"
#include "host/finding/labels.h"
#include "host/finding/mechanisms.h"
#include "host/track/parameter_history.h"

namespace numsan {

/// What a value that no parameter had touched, made outside of modules, was first computed with.
enum class FirstMet : uint8_t {
    Unknown,
    Parameter,   ///< as an input of the model: it is data
    Prediction,  ///< it belongs to the loss: a target, a return, an advantage
    Update,      ///< in the update of a parameter: a setting, a schedule
};

/// Magnitudes are absolute values; 0 means "not measured".
struct Features {
    // The operator.
    std::string op;          ///< plain name, "div"; of a backward birth the op inside the node
    std::string forward_op;  ///< plain name of the op that made the autograd node, empty outside a backward
    Mechanism mechanism = Mechanism::None;
    KindSet kind = 0;
    bool near_overflow = false;  ///< kind 0: close to the largest number of the type, or cut to it
    Phase phase = Phase::Forward;
    DType dtype = DType::Float32;
    bool narrow = false;           ///< a 16- or 8-bit float among operands or results
    bool narrow_upstream = false;  ///< a 16- or 8-bit float among what the operand was computed from

    // Its operands.
    double operand_max = 0;      ///< largest finite magnitude read
    double operand_min = 0;      ///< smallest non-zero magnitude read
    double result_estimate = 0;  ///< bound of the result in unlimited range, from the operands' ranges
    bool near_zero = false;      ///< an overflow: what it divided by is not zero, but close to it
    bool by_number = false;      ///< the operand to blame is a Python number
    bool bad_number = false;     ///< a Python number that it was given is not finite
    double weight_gain = 0;  ///< how many times larger the matrix it read makes values, by its size and largest entry
    bool reads_parameter = false;
    double wrong_target = 0;   ///< magnitude of the largest target, where the loss is not defined for one; else 0
    bool none_read = false;    ///< every operand has no elements
    double parameter_max = 0;  ///< largest magnitude of the parameters it read

    // Where the operand to blame came from.
    bool touched = false;               ///< some operand was computed from parameters
    bool operand_touched = false;       ///< the operand to blame was
    bool operand_is_parameter = false;  ///< the operand to blame is one
    int64_t operand_elements = 0;       ///< of the operand to blame
    /// the zero among them was too small for its 16- or 8-bit type: how that is known, empty when it is not
    std::string flushed;
    bool written_over = false;   ///< an op had left its memory finite, and no op was seen to write it since
    bool overwritten = false;    ///< the same of a parameter, or of what was computed from one
    bool first_update = false;   ///< the op updates in place what nothing wrote before
    bool of_loss = false;        ///< a loss of torch's is among its ancestors
    bool operand_known = false;  ///< it has ancestors that are remembered
    bool package = false;        ///< of kernels whose ops are not seen: AOTInductor made a package of them
    bool replayed = false;  ///< in the graph of a compiled region that was run once more: earlier steps ran elsewhere
    bool operand_constant = false;  ///< it was computed from numbers of the program alone: of no batch, no parameter
    RoundedOperand rounded;         ///< which op upstream had rounded it to a limit of its own
    std::string cut;                ///< the zero among them was a fraction, cut off by a cast: how that is known
    std::string reduction;          ///< nearest op upstream that reduces: sum, mean, var, norm, ...
    /// an integer it came from had wrapped around: how that is known, in which op and type; empty when it is not
    std::string wrapped;
    std::string wrapped_op;
    IntegerType wrapped_type = IntegerType::None;
    double growth = 0;    ///< operand_max over the smallest magnitude among its ancestors' largest
    int growing_ops = 0;  ///< ancestors whose results were at least ten times larger than what they read

    FirstMet met = FirstMet::Unknown;

    // The course of the run.
    int64_t step = 0;
    double loss_growth = 0;            ///< of a loss that diverges, over the last steps (see LossHistory), else 0
    ParameterGrowth parameter_growth;  ///< the largest of all parameters

    double parameter_start = 0;  ///< largest magnitude of a parameter before training changed it

    bool first_run = false;  ///< no earlier step is remembered in which the same op at the same place was finite

    // Its place.
    bool in_module = false;
    bool in_layer = false;      ///< in the forward of a module that has parameters of its own or below it
    bool own_backward = false;  ///< a Python frame of the program's own runs inside the autograd node
    bool gradients_off = false;
    bool loss_known = false;        ///< a backward() has started after it
    bool after_parameters = false;  ///< no parameter is read between it and the loss
    bool hidden = false;            ///< a forward value that only the backward pass brought to light
    bool scaler = false;            ///< a loss scaler runs
    EscapeInto into = EscapeInto::Output;
};

}  // namespace numsan
