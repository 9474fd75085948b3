#include "host/cause/title.h"

#include <algorithm>

#include "host/cause/birth.h"
#include "host/finding/finding.h"
#include "host/ops/op_traits.h"

namespace numsan {
namespace {

std::string what_it_did(const Birth& birth, bool reads) {
    const Mechanism mechanism = birth.mechanism;
    if (birth.intended) return "wrote infinities of the program's own";
    if (mechanism == Mechanism::DOM) return "left its domain";
    if (mechanism == Mechanism::SING || mechanism == Mechanism::DIV0) return "divided by zero";
    if (mechanism == Mechanism::OVF) return "overflowed";
    if (mechanism == Mechanism::INDET) return "met an indeterminate form of infinities";
    if (mechanism == Mechanism::UDF && birth.kind != 0)
        return "read a zero that its type made of a value too small for it";
    if (mechanism == Mechanism::UDF) return "rounded values to zero that are not";
    if (mechanism == Mechanism::PREC) return "made updates too small for the type to hold";
    if (mechanism == Mechanism::UNINIT) return "left memory that was read before anything wrote it";
    if (mechanism == Mechanism::DATA) {
        const bool alignment = traits_of(birth.op).form == Form::CtcLoss;
        return alignment ? "could not align targets with their inputs" : "took in a bad value";
    }
    if (mechanism == Mechanism::STATE) return "read a bad parameter";
    if (mechanism == Mechanism::HYPER) return "overflowed after training had diverged";
    if (mechanism == Mechanism::OPAQUE && !reads) return "made bad values";
    return "made bad values out of finite ones";
}

/// Values were cut to the largest number, and are not just close to it.
bool is_cut(Mechanism mechanism) { return mechanism == Mechanism::PREC; }

std::string how_near_overflow(const Birth& birth) {
    const std::string type = info(birth.features.dtype).name;
    return is_cut(birth.mechanism) ? "wrote the largest " + type + " in place of larger values"
                                   : "made values close to the largest " + type;
}

/// Where a value came from that no op was seen to make.
std::string finding_source(const Birth& birth) {
    if (birth.features.written_over)
        return std::string("it appeared in a ") + (birth.mechanism == Mechanism::STATE ? "parameter" : "tensor") +
               " between two operators";
    return birth.mechanism == Mechanism::STATE ? "it was in a parameter before training wrote it"
                                               : "it arrived with the data";
}

const char* kind_name(const Finding& finding) {
    switch (finding.kind) {
        case FindingKind::NaN: return "NaN";
        case FindingKind::Inf: return "infinity";
        case FindingKind::Overflow: return is_cut(finding.mechanism) ? "saturation" : "near overflow";
        case FindingKind::Underflow: return "underflow";
    }
    return "NaN";
}

}  // namespace

std::string happened(const Birth& birth) {
    std::string text;
    const bool reads =
        std::any_of(birth.inputs.begin(), birth.inputs.end(), [](const TensorFact& t) { return t.exact; });
    if (birth.op == "external") {
        text += finding_source(birth) + ", first read by `" + birth.reader + "`,";
    } else if (birth.op == kCompiledRegion) {
        text += "kernels of a compiled region made it,";
    } else {
        if (birth.has_forward) {
            text += "the backward of `" + birth.forward_op + "`";
        } else {
            text += (is_of_torch(birth.op) || is_library_call(birth.op) ? "`"
                     : is_kernel(birth.op)                              ? "the kernel `"
                                                                        : "the custom operator `") +
                    birth.op + "`";
        }
        text += " " + (birth.near_overflow ? how_near_overflow(birth) : what_it_did(birth, reads));
    }
    const std::vector<TensorFact>& facts = birth.outputs.empty() ? birth.inputs : birth.outputs;
    for (const TensorFact& fact : facts) {
        const Health& h = fact.health;
        const int64_t bad = birth.kind == kNaN      ? h.nan
                            : birth.kind == kPosInf ? h.pos_inf
                            : birth.kind == kNegInf ? h.neg_inf
                                                    : 0;
        if (bad == 0) continue;
        text += " in " + std::to_string(bad) + " of " + std::to_string(h.elements) + " value" +
                (h.elements == 1 ? "" : "s");
        break;
    }
    return text;
}

std::string title_of(const Finding& finding) {
    const std::string kind = kind_name(finding);
    return (finding.first ? "first " + kind + " of this run: " : "another " + kind + ": ") + finding.happened;
}

}  // namespace numsan
